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

}  // namespace

std::vector<std::string> name_words(std::string_view name, bool drop_vendor) {
  std::vector<std::string> raw, out;
  std::string word;
  for (char c : name) {
    if (c == ' ' || c == '-' || c == '_' || c == '(' || c == ')' || c == '\t') {
      if (!word.empty()) add_split(std::move(word), raw);
      word.clear();
    } else {
      word += lower(c);
    }
  }
  if (!word.empty()) add_split(std::move(word), raw);
  for (std::string& each : raw) {
    if (!dropped(each, drop_vendor)) out.push_back(std::move(each));
  }
  return out;
}

bool contains_words(const std::vector<std::string>& whole, const std::vector<std::string>& part) {
  return std::all_of(part.begin(), part.end(), [&](const std::string& word) {
    return std::find(whole.begin(), whole.end(), word) != whole.end();
  });
}

}  // namespace cufit::knowledge
