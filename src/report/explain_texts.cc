// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>

#include "base/format.h"
#include "report/explain.h"

namespace cufit::report {
namespace {

// {name}, as fill() leaves it where nothing is known of the name. "{}" of a shell or JSON is none.
bool has_placeholder(std::string_view text) {
  for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && (text[end] == '_' || (text[end] >= 'a' && text[end] <= 'z') ||
                                 (text[end] >= '0' && text[end] <= '9')))
      ++end;
    if (end > at + 1 && end < text.size() && text[end] == '}') return true;
  }
  return false;
}

// After the end of the sentence that begins at `at`, its blanks included.
size_t sentence_end(std::string_view text, size_t at) {
  constexpr std::string_view k_full_stop = "\xE3\x80\x82";  // of Chinese
  bool quoted = false;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '`') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '.' && i + 1 < text.size() && text[i + 1] == ' ') return i + 2;
    if (text.substr(i, k_full_stop.size()) == k_full_stop) return i + k_full_stop.size();
  }
  return text.size();
}

// The values of the pattern's {names} in a text that is nothing but this pattern filled in.
std::optional<std::map<std::string, std::string>> values_in(std::string_view text,
                                                            std::string_view pattern) {
  std::map<std::string, std::string> out;
  while (true) {
    const size_t open = pattern.find('{');
    if (open == pattern.npos) return text == pattern ? std::optional(std::move(out)) : std::nullopt;
    if (!starts_with(text, pattern.substr(0, open))) return std::nullopt;
    text.remove_prefix(open);
    const size_t close = pattern.find('}', open);
    if (close == pattern.npos) return std::nullopt;
    const std::string name(pattern.substr(open + 1, close - open - 1));
    pattern.remove_prefix(close + 1);
    const std::string_view literal = pattern.substr(0, pattern.find('{'));
    const size_t end = literal.empty() ? text.size() : text.find(literal);
    if (end == text.npos || end == 0) return std::nullopt;
    out[name] = std::string(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace

std::string cause_text(const explain::Cause& cause, std::string_view part, std::string_view lang,
                       const knowledge::Knowledge& knowledge) {
  const std::string text = finding_text(cause.finding, part, lang, knowledge);
  if (!has_placeholder(text)) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = sentence_end(text, at);
    const std::string_view sentence = std::string_view(text).substr(at, end - at);
    if (!has_placeholder(sentence)) out += sentence;
    at = end;
  }
  return std::string(trim(out));
}

std::string clue_text(std::string_view clue, std::string_view lang,
                      const knowledge::Knowledge& knowledge) {
  for (const knowledge::ClueRow& row : knowledge.clues) {
    if (row.id == clue) return std::string(lang == "zh" ? row.zh : row.en);
  }
  return std::string(clue);
}

std::string fact_text(const std::string& fact, std::string_view lang,
                      const knowledge::Knowledge& knowledge) {
  if (lang != "zh") return fact;
  // "asked for {size}" fits "asked for 1 GiB, the card has 2 GiB" as well: the longest one is
  // meant.
  const knowledge::TextPair* best = nullptr;
  std::map<std::string, std::string> values;
  for (const knowledge::TextPair& pair : knowledge.messages) {
    if (!starts_with(pair.key, "explain.fact.") || (best && best->en.size() >= pair.en.size()))
      continue;
    std::optional<std::map<std::string, std::string>> found = values_in(fact, pair.en);
    if (!found) continue;
    best = &pair;
    values = std::move(*found);
  }
  return best ? fill(best->zh, values) : fact;
}

}  // namespace cufit::report
