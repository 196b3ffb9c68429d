// SPDX-License-Identifier: Apache-2.0
// Rates and times as `cufit top` writes them: short, in the unit that people say.
#include <algorithm>
#include <cmath>
#include <iterator>

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

std::string rough_time(double seconds, std::string_view lang) {
  struct Unit {
    double below, seconds;  // the first of these that is enough
    const char *en, *zh;
  };
  constexpr Unit k_units[] = {{90, 1, "s", "秒"},
                              {90 * 60, 60, "min", "分钟"},
                              {48 * 3600, 3600, "h", "小时"},
                              {HUGE_VAL, 86400, "d", "天"}};
  if (!(seconds >= 0)) seconds = 0;
  const Unit* unit = k_units;
  while (unit + 1 != std::end(k_units) && seconds >= unit->below) ++unit;
  return format("{:.0f} {}", std::min(seconds / unit->seconds, 9999.0),
                lang == "zh" ? unit->zh : unit->en);
}

}  // namespace cufit::report
