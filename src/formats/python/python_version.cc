// SPDX-License-Identifier: Apache-2.0
// PEP 440: how Python versions are written, normalised and ordered.
#include <algorithm>
#include <cctype>

#include "base/ascii.h"
#include "formats/python/requirement.h"

namespace cufit::formats {
namespace {

char lower_of(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// A number of at most 18 digits; more is no version that anybody publishes.
std::optional<uint64_t> take_number(std::string_view& text) {
  size_t digits = 0;
  uint64_t value = 0;
  while (digits < text.size() && is_digit(text[digits])) {
    if (digits >= 18) return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(text[digits] - '0');
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i)
    if (lower_of(text[i]) != word[i]) return false;
  text.remove_prefix(word.size());
  return true;
}

void take_separator(std::string_view& text) {
  if (!text.empty() && (text[0] == '.' || text[0] == '-' || text[0] == '_')) text.remove_prefix(1);
}

struct Suffix {
  char kind;  // 'a', 'b', 'r', 'p' post, 'd' dev
  uint64_t number;
};

// "rc1", ".post2", "-dev", "alpha.3"; a number may be left out and is 0 then.
std::optional<Suffix> take_suffix(std::string_view& text) {
  static constexpr std::pair<std::string_view, char> k_words[] = {
      {"alpha", 'a'}, {"a", 'a'}, {"beta", 'b'}, {"b", 'b'},   {"preview", 'r'}, {"pre", 'r'},
      {"rc", 'r'},    {"c", 'r'}, {"post", 'p'}, {"rev", 'p'}, {"r", 'p'},       {"dev", 'd'}};
  std::string_view rest = text;
  take_separator(rest);
  for (const auto& [word, kind] : k_words) {
    if (!take_word(rest, word)) continue;
    take_separator(rest);
    const uint64_t number = take_number(rest).value_or(0);
    text = rest;
    return Suffix{kind, number};
  }
  // "1.0-1" is an implicit post release.
  rest = text;
  if (!rest.empty() && rest[0] == '-') {
    rest.remove_prefix(1);
    if (std::optional<uint64_t> number = take_number(rest)) {
      text = rest;
      return Suffix{'p', *number};
    }
  }
  return std::nullopt;
}

bool has_local_part(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

// Local versions are compared part by part; numbers are greater than words.
std::strong_ordering compare_local(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    if (a.empty()) return std::strong_ordering::less;
    if (b.empty()) return std::strong_ordering::greater;
    std::string_view x = a.substr(0, a.find('.')), y = b.substr(0, b.find('.'));
    a.remove_prefix(std::min(a.size(), x.size() + 1));
    b.remove_prefix(std::min(b.size(), y.size() + 1));
    std::string_view x_rest = x, y_rest = y;
    const std::optional<uint64_t> m = take_number(x_rest), n = take_number(y_rest);
    const bool x_number = m && x_rest.empty(), y_number = n && y_rest.empty();
    if (x_number != y_number)
      return x_number ? std::strong_ordering::greater : std::strong_ordering::less;
    const std::strong_ordering order = x_number ? *m <=> *n : x.compare(y) <=> 0;
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

// dev alone sorts before every pre-release, a final release after them.
int pre_rank(const PythonVersion& version) {
  if (version.pre) return version.pre->first == 'a' ? 1 : version.pre->first == 'b' ? 2 : 3;
  return version.dev && !version.post ? 0 : 4;
}

}  // namespace

std::optional<PythonVersion> parse_python_version(std::string_view text) {
  PythonVersion version;
  version.text = std::string(text);
  if (text.size() > 128) return std::nullopt;
  if (!text.empty() && lower_of(text[0]) == 'v') text.remove_prefix(1);
  std::optional<uint64_t> first = take_number(text);
  if (!first) return std::nullopt;
  if (!text.empty() && text[0] == '!') {
    version.epoch = *first;
    text.remove_prefix(1);
    first = take_number(text);
    if (!first) return std::nullopt;
  }
  version.release.push_back(*first);
  while (text.size() > 1 && text[0] == '.' && is_digit(text[1])) {
    text.remove_prefix(1);
    const std::optional<uint64_t> part = take_number(text);
    if (!part) return std::nullopt;
    version.release.push_back(*part);
  }
  while (std::optional<Suffix> suffix = take_suffix(text)) {
    const bool late = version.dev.has_value() || (suffix->kind != 'd' && version.post) ||
                      (suffix->kind != 'd' && suffix->kind != 'p' && version.pre);
    if (late) return std::nullopt;
    if (suffix->kind == 'p')
      version.post = suffix->number;
    else if (suffix->kind == 'd')
      version.dev = suffix->number;
    else
      version.pre = {suffix->kind, suffix->number};
  }
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!has_local_part(text)) return std::nullopt;
    for (char c : text) version.local += c == '-' || c == '_' ? '.' : lower_of(c);
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  return version;
}

std::strong_ordering compare(const PythonVersion& a, const PythonVersion& b) {
  if (a.epoch != b.epoch) return a.epoch <=> b.epoch;
  for (size_t i = 0; i < std::max(a.release.size(), b.release.size()); ++i) {
    const uint64_t x = i < a.release.size() ? a.release[i] : 0;
    const uint64_t y = i < b.release.size() ? b.release[i] : 0;
    if (x != y) return x <=> y;
  }
  if (const auto order = pre_rank(a) <=> pre_rank(b); order != 0) return order;
  if (a.pre && b.pre && a.pre->second != b.pre->second) return a.pre->second <=> b.pre->second;
  // No post release is before any, and dev comes before the release that it develops.
  if (a.post.has_value() != b.post.has_value())
    return a.post ? std::strong_ordering::greater : std::strong_ordering::less;
  if (a.post && *a.post != *b.post) return *a.post <=> *b.post;
  if (a.dev.has_value() != b.dev.has_value())
    return a.dev ? std::strong_ordering::less : std::strong_ordering::greater;
  if (a.dev && *a.dev != *b.dev) return *a.dev <=> *b.dev;
  return compare_local(a.local, b.local);
}

}  // namespace cufit::formats
