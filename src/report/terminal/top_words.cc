// SPDX-License-Identifier: Apache-2.0
// Rates and times as `cufit top` writes them: short, in the unit that people say.
#include <cmath>

#include "base/format.h"
#include "report/top.h"

namespace cufit::report {

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s >= 1e9) return format("{:.1f} GB/s", bytes_per_s / 1e9);
  if (bytes_per_s >= 1e6) return format("{:.0f} MB/s", bytes_per_s / 1e6);
  return format("{:.0f} kB/s", bytes_per_s / 1e3);
}

std::string growth_text(double bytes_per_s) {
  constexpr double k_mib = 1 << 20;
  const double of_minute = std::abs(bytes_per_s) * 60 / k_mib;
  const char* const sign = bytes_per_s < 0 ? "-" : "+";
  if (of_minute >= 1024) return format("{}{:.1f} GiB/min", sign, of_minute / 1024);
  if (of_minute >= 1) return format("{}{:.0f} MiB/min", sign, of_minute);
  return format("{}{:.0f} MiB/h", sign, of_minute * 60);
}

std::string rough_time(double seconds) {
  if (!(seconds >= 0)) return "0 s";
  if (seconds < 90) return format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return format("{:.0f} h", seconds / 3600);
  return format("{:.0f} d", std::min(seconds / 86400, 9999.0));
}

}  // namespace cufit::report
