// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cufit {

// Seconds of "90", "90s", "30m", "2h", "1d": whole numbers. Nothing for anything else, or more than ten years.
std::optional<uint64_t> parse_duration(std::string_view text);
// "0:07", "12:03", "25:00:10": hours, minutes and seconds.
std::string format_duration(uint64_t seconds);

}  // namespace cufit
