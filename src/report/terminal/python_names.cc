// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/python_names.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace cufit::report {
namespace {

// Those of Python 3: `model.in` is no expression, though add_module() takes the name.
constexpr std::string_view k_keywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Letters of other alphabets are bytes from 0x80 on.
bool may_stand_in_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

bool is_python_name(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), may_stand_in_name) &&
         std::find(std::begin(k_keywords), std::end(k_keywords), text) == std::end(k_keywords);
}

std::string python_module(std::string_view path) {
  if (path.empty()) return "model";
  const std::vector<std::string_view> parts = split(path, '.');
  const bool names = std::all_of(parts.begin(), parts.end(), is_python_name);
  return names ? format("model.{}", path) : format("model.get_submodule({})", in_quotes(path));
}

}  // namespace cufit::report
