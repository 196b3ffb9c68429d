// SPDX-License-Identifier: Apache-2.0
// Whole numbers in texts from outside: all of the text or nothing, no sign, no overflow. And lists
// of them as a person writes them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cufit {

inline std::optional<uint64_t> parse_uint(std::string_view text, int base = 10) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  std::from_chars_result result = std::from_chars(text.data(), end, value, base);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

// {0,1,2,5} -> "0-2, 5" with ", " between; of ascending numbers. Two neighbours are no range.
inline std::string number_ranges(const std::vector<uint32_t>& numbers, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += between;
    out += std::to_string(numbers[i]);
    if (last == i + 1) out += between;
    if (last > i + 1) out += "-";
    if (last > i) out += std::to_string(numbers[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace cufit
