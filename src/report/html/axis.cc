// SPDX-License-Identifier: Apache-2.0
#include "report/html/axis.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::report {
namespace {

constexpr uint64_t k_units[] = {1u << 30, 1u << 20, 1u << 10, 1};
constexpr const char* k_names[] = {"GiB", "MiB", "KiB", "B"};

// The smallest of 1, 2, 5, 10, 20 .. that is at least `least`.
uint64_t round_step(uint64_t least) {
  uint64_t power = 1;
  while (least > 10 * power) power *= 10;
  for (const uint64_t times : {1, 2, 5, 10})
    if (times * power >= least) return times * power;
  return 10 * power;
}

std::vector<uint64_t> multiples(uint64_t step, uint64_t most) {
  std::vector<uint64_t> out;
  for (uint64_t at = 0; at <= most; at += step) out.push_back(at);
  if (out.size() == 1 && most != 0) out.push_back(most);
  return out;
}

}  // namespace

std::vector<uint64_t> count_ticks(uint64_t most, unsigned about) {
  const uint64_t parts = std::max(about, 2u) - 1;
  return multiples(round_step(std::max<uint64_t>((most + parts - 1) / parts, 1)), most);
}

std::vector<uint64_t> byte_ticks(uint64_t most, unsigned about) {
  const uint64_t parts = std::max(about, 2u) - 1;
  const uint64_t least = std::max<uint64_t>((most + parts - 1) / parts, 1);
  for (const uint64_t unit : k_units) {
    if (least * 2 < unit) continue;
    // Half a unit is a round number of it as well.
    const uint64_t step =
        least * 2 <= unit ? unit / 2 : round_step((least + unit - 1) / unit) * unit;
    return multiples(std::max<uint64_t>(step, 1), most);
  }
  return multiples(least, most);
}

std::string byte_tick_text(uint64_t bytes) {
  if (bytes == 0) return "0";
  for (size_t i = 0; i < std::size(k_units); ++i) {
    const uint64_t unit = k_units[i];
    if (bytes * 2 < unit) continue;
    if (bytes % unit == 0) return format("{} {}", bytes / unit, k_names[i]);
    if (bytes % (unit / 2) == 0) return format("{}.5 {}", bytes / unit, k_names[i]);
  }
  return format("{} B", bytes);
}

}  // namespace cufit::report
