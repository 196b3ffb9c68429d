// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include "base/format.h"
#include "base/number.h"

namespace cufit {

std::optional<uint64_t> parse_duration(std::string_view text) {
  constexpr uint64_t k_most_seconds = uint64_t{3653} * 24 * 3600;
  uint64_t unit = 1;
  switch (text.empty() ? ' ' : text.back()) {
    case 'd':
      unit = 24 * 3600;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'm':
      unit = 60;
      break;
    case 's':
      break;
    default:
      unit = 0;
  }
  if (unit != 0) text.remove_suffix(1);
  const std::optional<uint64_t> number = parse_uint(text);
  const uint64_t factor = unit == 0 ? 1 : unit;
  if (!number || *number > k_most_seconds / factor) return std::nullopt;
  return *number * factor;
}

std::string format_duration(uint64_t seconds) {
  const uint64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  if (hours == 0) return format("{}:{:02}", minutes, seconds % 60);
  return format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
}

}  // namespace cufit
