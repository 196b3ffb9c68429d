// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/settings_tokens.h"

#include <cstdlib>

#include "base/format.h"
#include "base/number.h"

namespace cufit::memory {

SettingsTokens::SettingsTokens(std::string_view text) : end_(text.size()) {
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      tokens_.push_back({std::string(1, c), i});
      in_word = false;
    } else if (c != ' ') {
      if (!in_word) tokens_.push_back({"", i});
      tokens_.back().text.push_back(c);
      in_word = true;
    }
  }
}

Error SettingsTokens::wrong(std::string_view key, std::string_view what) const {
  const std::string found = done() ? "the text ends" : format("`{}` stands", tokens_[next_].text);
  return fail(Code::usage,
              format("allocator setting `{}`: {}, but {} at byte {}", key, what, found, place()));
}

Result<bool> SettingsTokens::expect(std::string_view token, std::string_view key) {
  if (!at(token)) return wrong(key, format("expected `{}`", token));
  ++next_;
  return true;
}

Result<uint64_t> SettingsTokens::number(std::string_view key) {
  const auto value = parse_uint(peek());
  if (!value) return wrong(key, "expected a whole number");
  ++next_;
  return *value;
}

Result<double> SettingsTokens::real(std::string_view key) {
  // std::from_chars for double is missing in g++ 10.
  const std::string text(peek());
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return wrong(key, "expected a number");
  ++next_;
  return value;
}

Result<bool> SettingsTokens::boolean(std::string_view key) {
  const bool value = at("True");
  if (!value && !at("False")) return wrong(key, "expected True or False");
  ++next_;
  return value;
}

}  // namespace cufit::memory
