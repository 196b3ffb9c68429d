// SPDX-License-Identifier: Apache-2.0
// Whole numbers in texts from outside: all of the text or nothing, no sign, no overflow.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cufit {

inline std::optional<uint64_t> parse_uint(std::string_view text, int base = 10) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  std::from_chars_result result = std::from_chars(text.data(), end, value, base);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace cufit
