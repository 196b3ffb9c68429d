// SPDX-License-Identifier: Apache-2.0
#include "formats/system/sshd_config.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_sshd_settings = 10000;

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Up to a comment, which begins at a word of its own; quotes are taken off.
std::string sshd_value(std::string_view text) {
  std::string out;
  bool quoted = false, blank = true;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      blank = false;
      continue;
    }
    if (c == '#' && blank && !quoted) break;
    blank = c == ' ' || c == '\t';
    out += c == '\t' ? ' ' : c;
  }
  return std::string(trim(out));
}

}  // namespace

std::vector<SshdSetting> parse_sshd_config(std::string_view text) {
  std::vector<SshdSetting> out;
  std::string match;
  uint32_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line[0] == '#') continue;
    const size_t end = std::min(line.find_first_of(" \t="), line.size());
    SshdSetting one;
    for (const char c : line.substr(0, end)) one.keyword += lower_letter(c);
    std::string_view rest = trim(line.substr(end));
    if (starts_with(rest, "=")) rest = trim(rest.substr(1));
    one.value = sshd_value(rest);
    one.line = number;
    if (one.keyword.empty() || one.value.empty()) continue;
    if (one.keyword == "match") {
      std::string lower;
      for (const char c : one.value) lower += lower_letter(c);
      match = lower == "all" ? std::string() : one.value;
      continue;
    }
    one.match = match;
    if (out.size() >= k_most_sshd_settings) break;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace cufit::formats
