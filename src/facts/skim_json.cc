// SPDX-License-Identifier: Apache-2.0
#include "facts/skim_json.h"

#include <algorithm>

namespace cufit::facts {
namespace {

constexpr size_t npos = std::string_view::npos;
constexpr int k_deepest = 2;

// One after the closing quote of the string that begins at `at`; npos: there is none.
size_t after_string(std::string_view text, size_t at) {
  for (size_t end = text.find('"', at + 1); end != npos; end = text.find('"', end + 1)) {
    size_t slashes = 0;
    while (text[end - 1 - slashes] == '\\') ++slashes;
    if (slashes % 2 == 0) return end + 1;  // not escaped
  }
  return npos;
}

// One after the value that begins at `at`.
size_t after_value(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = after_string(text, at);
      if (at == npos || depth == 0) return at;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    }
    if (c == ',' && depth == 0) return at;
    ++at;
  }
  return npos;
}

}  // namespace

std::string without_member(std::string_view text, std::string_view name) {
  std::string out;
  size_t kept = 0;
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') {
      ++at;
      continue;
    }
    const size_t end = after_string(text, at);
    if (end == npos) break;
    const bool named = depth <= k_deepest && text.substr(at + 1, end - at - 2) == name;
    const size_t colon = text.find_first_not_of(" \t\r\n", end);
    at = end;
    if (!named || colon == npos || text[colon] != ':') continue;
    const size_t value = text.find_first_not_of(" \t\r\n", colon + 1);
    const size_t after = value == npos ? npos : after_value(text, value);
    if (after == npos) break;
    out.append(text, kept, value - kept);
    out += "null";
    kept = at = after;
  }
  out.append(text.substr(kept));
  return out;
}

}  // namespace cufit::facts
