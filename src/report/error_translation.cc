// SPDX-License-Identifier: Apache-2.0
#include "report/error_translation.h"

#include <map>
#include <optional>
#include <vector>

#include "base/format.h"
#include "report/report.h"

namespace cufit::report {
namespace {

constexpr std::string_view k_keys = "said.";
constexpr std::string_view k_places = "said.place.";  // only before what is such a text itself
constexpr int k_deepest = 3;                          // texts within texts
constexpr size_t k_weak = 14;        // of literals, below which a pattern fits what others say too
constexpr size_t k_most_places = 4;  // of ": " in a text: each is tried, and those behind it again
constexpr size_t k_longest_text = 4096;  // no sentence of ours is longer; what is quoted may be

// A pattern cut at its {names}: literals[0] {names[0]} literals[1] ... "{{" and "}}" are braces.
struct Pattern {
  std::vector<std::string> literals = {""};
  std::vector<std::string> names;
  size_t weight = 0;  // characters of literals: the more of them fit, the surer is the match
};

Pattern parse_pattern(std::string_view text) {
  Pattern out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      out.literals.back() += c;
      ++i;
    } else if (const size_t close = text.find('}', i); c == '{' && close != text.npos) {
      out.names.emplace_back(text.substr(i + 1, close - i - 1));
      out.literals.emplace_back();
      i = close;
    } else {
      out.literals.back() += c;
    }
  }
  for (const std::string& literal : out.literals) out.weight += literal.size();
  return out;
}

// What stands for a text itself, ours or another's.
bool is_text(std::string_view name) {
  return starts_with(name, "what") || starts_with(name, "why");
}
bool ends_where_said(std::string_view name) {
  return !is_text(name) && name != "text" && name != "meaning";
}

// The values of the pattern's names in a text that is nothing but this pattern filled in: every
// literal at the first place where it can be, the last one at the end.
std::optional<std::map<std::string, std::string>> values_in(std::string_view text,
                                                            const Pattern& pattern) {
  if (!starts_with(text, pattern.literals.front())) return std::nullopt;
  std::map<std::string, std::string> out;
  size_t at = pattern.literals.front().size();
  for (size_t i = 0; i < pattern.names.size(); ++i) {
    const std::string& literal = pattern.literals[i + 1];
    const bool last = i + 1 == pattern.names.size();
    size_t end = text.npos;
    if (last) {
      if (text.size() >= at + literal.size() && ends_with(text, literal))
        end = text.size() - literal.size();
    } else {
      end = text.find(literal, at);
    }
    if (end == text.npos) return std::nullopt;
    const std::string_view value = text.substr(at, end - at);
    // A name at the end of a message does not reach over ": " into what follows it.
    if (last && literal.empty() && contains(value, ": ") && ends_where_said(pattern.names[i]))
      return std::nullopt;
    out[pattern.names[i]] = std::string(value);
    at = end + literal.size();
  }
  return at == text.size() ? std::optional(std::move(out)) : std::nullopt;
}

class Rewording {
 public:
  Rewording(std::string_view keys, const knowledge::Knowledge& knowledge) : knowledge_(knowledge) {
    for (const knowledge::TextPair& pair : knowledge.messages)
      if (starts_with(pair.key, keys))
        (starts_with(pair.key, k_places) ? places_ : pairs_).push_back(&pair);
  }

  // By one message, as a whole.
  std::optional<std::string> whole(std::string_view text, int depth) const {
    return by(pairs_, text, depth, Weak::no);
  }

  // By one message, or by those of its parts: "where: what".
  std::optional<std::string> joined(std::string_view text, int depth) const {
    if (std::optional<std::string> found = whole(text, depth)) return found;
    if (pairs_.empty() || depth > k_deepest || text.size() > k_longest_text) return std::nullopt;
    size_t places = 0;
    for (size_t at = text.find(": "); at != text.npos && places < k_most_places;
         at = text.find(": ", at + 1), ++places) {
      const std::string_view where = text.substr(0, at), what = text.substr(at + 2);
      const std::optional<std::string> inner = joined(what, depth + 1);
      std::optional<std::string> outer = whole(where, depth + 1);
      if (inner && !outer) outer = by(places_, where, depth + 1, Weak::no);
      if (inner || outer)
        return outer.value_or(std::string(where)) + "：" + inner.value_or(std::string(what));
    }
    return by(pairs_, text, depth, Weak::yes);
  }

 private:
  enum class Weak { no, yes };
  using Pairs = std::vector<const knowledge::TextPair*>;

  std::optional<std::string> by(const Pairs& pairs, std::string_view text, int depth,
                                Weak weak) const {
    if (text.empty() || text.size() > k_longest_text || depth > k_deepest) return std::nullopt;
    const knowledge::TextPair* best = nullptr;
    std::map<std::string, std::string> values;
    size_t weight = 0;
    for (const knowledge::TextPair* pair : pairs) {
      const size_t open = std::min(pair->en.find('{'), pair->en.size());
      const size_t close = pair->en.rfind('}') + 1;  // 0 where there is none
      if (!starts_with(text, pair->en.substr(0, open)) || !ends_with(text, pair->en.substr(close)))
        continue;  // most fall here
      const Pattern pattern = parse_pattern(pair->en);
      if (best != nullptr && pattern.weight <= weight) continue;
      std::optional<std::map<std::string, std::string>> found = values_in(text, pattern);
      if (!found) continue;
      const auto meant = found->find("meaning");
      if (meant != found->end() && knowledge_.meaning_zh(meant->second).empty()) continue;
      best = pair;
      weight = pattern.weight;
      values = std::move(*found);
    }
    if (best == nullptr) return std::nullopt;
    bool inner = false, inner_fits = false;
    for (auto& [name, value] : values) {
      if (name == "meaning") value = std::string(knowledge_.meaning_zh(value));
      if (!is_text(name)) continue;
      const std::optional<std::string> found = joined(value, depth + 1);
      inner = true;
      inner_fits = inner_fits || found;
      value = found.value_or(value);
    }
    // " at byte 12" alone does not tell whose sentence it is.
    if (inner && weight < k_weak && (weak == Weak::no || !inner_fits)) return std::nullopt;
    return format_message(best->zh, values);
  }

  const knowledge::Knowledge& knowledge_;
  Pairs pairs_, places_;
};

}  // namespace

std::string reworded(std::string_view text, std::string_view keys, std::string_view lang,
                     const knowledge::Knowledge& knowledge) {
  if (text.empty() || lang != "zh") return std::string(text);
  return Rewording(keys, knowledge).whole(text, 0).value_or(std::string(text));
}

std::string translated_error(std::string_view text, std::string_view lang,
                             const knowledge::Knowledge& knowledge) {
  if (text.empty() || lang != "zh") return std::string(text);
  return Rewording(k_keys, knowledge).joined(text, 0).value_or(std::string(text));
}

}  // namespace cufit::report
