// SPDX-License-Identifier: Apache-2.0
#include "knowledge/text_tokens.h"

#include <algorithm>

namespace cufit::knowledge {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// "rtx3090" -> "rtx" "3090"; "3090ti" -> "3090" "ti". Only these: "a100", "sm4" and "80gb" are
// words of their own.
void add_split(std::string word, std::vector<std::string>& out) {
  for (const char* prefix : {"rtx", "gtx"}) {
    if (word.size() > 3 && word.compare(0, 3, prefix) == 0 && digit(word[3])) {
      out.push_back(prefix);
      word.erase(0, 3);
    }
  }
  for (std::string_view suffix : {"super", "ti"}) {
    const size_t cut = word.size() - std::min(word.size(), suffix.size());
    if (cut > 0 && digit(word[cut - 1]) && std::string_view(word).substr(cut) == suffix) {
      out.push_back(word.substr(0, cut));
      word.erase(0, cut);
    }
  }
  out.push_back(std::move(word));
}

bool dropped(std::string_view word, bool drop_vendor) {
  if (word == "gpu") return true;
  return drop_vendor &&
         (word == "nvidia" || word == "geforce" || word == "tesla" || word == "quadro");
}

bool all_digits(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), digit);
}

// "NVIDIA Corporation GA106 [GeForce RTX 3060 Lite Hash Rate] (rev a1)", as lspci has it: the
// product stands in the brackets.
std::string_view product_part(std::string_view name) {
  const size_t open = name.find('['), close = name.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return name;
  return name.substr(open + 1, close - open - 1);
}

// Signs of a trade mark, in UTF-8; the length of the one that begins at `at`, or 0.
size_t trade_mark(std::string_view name, size_t at) {
  for (std::string_view sign : {"\xE2\x84\xA2", "\xC2\xAE", "\xC2\xA9"})
    if (name.substr(at, sign.size()) == sign) return sign.size();
  return 0;
}

// Words of a shop or of lspci in the way this table writes them: "12g", "12 gb" -> "12gb"; "mobile"
// -> "laptop"; without "lite hash rate", "max-q", the kind of memory.
std::vector<std::string> as_in_table(const std::vector<std::string>& raw) {
  static constexpr std::string_view k_idle[] = {"lhr",  "lite",   "hash", "rate", "max", "q", "/",
                                                "with", "design", "tm",   "r",    "rev", "oc"};
  std::vector<std::string> out;
  for (const std::string& word : raw) {
    if (std::find(std::begin(k_idle), std::end(k_idle), word) != std::end(k_idle)) continue;
    if (word.compare(0, 4, "gddr") == 0) continue;
    const bool unit = word == "gb" || word == "g" || word == "gib";
    if (unit && !out.empty() && all_digits(out.back()) && out.back().size() <= 3) {
      out.back() += "gb";
    } else if (word == "mobile") {
      out.emplace_back("laptop");
    } else {
      const size_t at = word.find_first_not_of("0123456789");
      const std::string tail = at == std::string::npos ? "" : word.substr(at);
      const bool size = at > 0 && at <= 3 && (tail == "g" || tail == "gib");
      out.push_back(size ? word.substr(0, at) + "gb" : word);
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> name_words(std::string_view name, bool drop_vendor) {
  std::vector<std::string> raw, out;
  std::string word;
  name = product_part(name);
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const size_t sign = trade_mark(name, i);
    if (sign > 0) i += sign - 1;
    if (sign > 0 || c == ' ' || c == '-' || c == '_' || c == '(' || c == ')' || c == '\t') {
      if (!word.empty()) add_split(std::move(word), raw);
      word.clear();
    } else {
      word += lower(c);
    }
  }
  if (!word.empty()) add_split(std::move(word), raw);
  for (std::string& each : as_in_table(raw)) {
    if (!dropped(each, drop_vendor)) out.push_back(std::move(each));
  }
  return out;
}

bool is_memory_size(std::string_view word) {
  return word.size() > 2 && word.substr(word.size() - 2) == "gb" &&
         all_digits(word.substr(0, word.size() - 2));
}

bool contains_words(const std::vector<std::string>& whole, const std::vector<std::string>& part) {
  return std::all_of(part.begin(), part.end(), [&](const std::string& word) {
    return std::find(whole.begin(), whole.end(), word) != whole.end();
  });
}

}  // namespace cufit::knowledge
