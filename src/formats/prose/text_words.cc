// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/text_words.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

char low(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same(std::string_view text, std::string_view word) {
  for (size_t i = 0; i < word.size(); ++i)
    if (low(text[i]) != low(word[i])) return false;
  return true;
}

size_t next_byte(std::string_view text, char byte, size_t from) {
  return from < text.size() ? text.find(byte, from) : text.npos;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view line, size_t limit) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (words.size() < limit) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) break;
    size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

size_t find_word(std::string_view text, std::string_view word, size_t from, bool whole) {
  if (word.empty()) return std::string_view::npos;
  const char first = low(word[0]),
             upper = static_cast<char>(first >= 'a' && first <= 'z' ? first - 32 : first);
  // The next place of either case: memchr is much faster than a loop, and most words are nowhere.
  size_t lower_at = next_byte(text, first, from);
  size_t upper_at = upper == first ? text.npos : next_byte(text, upper, from);
  for (size_t i = std::min(lower_at, upper_at); i != text.npos && i + word.size() <= text.size();
       i = std::min(lower_at, upper_at)) {
    if (lower_at == i) lower_at = next_byte(text, first, i + 1);
    if (upper_at == i) upper_at = next_byte(text, upper, i + 1);
    if (!same(text.substr(i), word)) continue;
    if (!whole) return i;
    bool starts = i == 0 || !is_name_char(text[i - 1]);
    size_t end = i + word.size();
    if (starts && (end == text.size() || !is_name_char(text[end]))) return i;
  }
  return std::string_view::npos;
}

bool has_word(std::string_view text, std::string_view word) {
  return find_word(text, word) != std::string_view::npos;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && same(text, word) &&
         (text.size() == word.size() || !is_name_char(text[word.size()]));
}

bool equal_words(std::string_view a, std::string_view b) {
  return a.size() == b.size() && same(a, b);
}

std::string_view python_version_at(std::string_view text) {
  if (text.empty() || !is_digit(text[0])) return {};
  size_t end = 0;
  while (end < text.size() && end <= 64 &&
         (is_name_char(text[end]) || text[end] == '.' || text[end] == '+' || text[end] == '!'))
    ++end;
  if (end > 64) return {};
  while (end > 0 && !is_digit(text[end - 1]) && !is_letter(text[end - 1])) --end;
  return text.substr(0, end);
}

std::string_view dotted_number_at(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && end <= 32 &&
         (is_digit(text[end]) ||
          (text[end] == '.' && end > 0 && end + 1 < text.size() && is_digit(text[end + 1]))))
    ++end;
  return end > 32 ? std::string_view() : text.substr(0, end);
}

bool has_inner_dot(std::string_view version) {
  size_t dot = version.find('.');
  return dot != std::string_view::npos && dot > 0 && dot + 1 < version.size() &&
         is_digit(version[dot + 1]);
}

std::string_view value_after(std::string_view text) {
  for (bool again = true; again;) {
    size_t start = std::min(text.find_first_not_of(" \t:=(\"'`*|"), text.size());
    text.remove_prefix(start);
    again = false;
    for (std::string_view word : {"version", "is", "ver", "ver.", "->"}) {
      if (!starts_with_word(text, word)) continue;
      text.remove_prefix(word.size());
      again = true;
    }
  }
  if (text.size() > 1 && (text[0] == 'v' || text[0] == 'V') && is_digit(text[1]))
    text.remove_prefix(1);
  return text;
}

std::optional<uint64_t> mib_at(std::string_view text) {
  size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::optional<uint64_t> number = parse_uint(text.substr(0, end));
  if (!number || *number > 100'000'000) return std::nullopt;
  text.remove_prefix(end);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (starts_with_word(text, "mib") || starts_with_word(text, "mb")) return *number;
  if (starts_with_word(text, "gib")) return *number * 1024;
  return std::nullopt;
}

}  // namespace cufit::formats
