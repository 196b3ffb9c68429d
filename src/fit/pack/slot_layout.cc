// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/slot_layout.h"

#include <algorithm>
#include <numeric>

namespace cufit::pack {
namespace {

uint64_t units_mask(uint32_t start, uint32_t units) {
  return ((uint64_t{1} << units) - 1) << start;
}

bool lay_out_from(const std::vector<Extent>& extents, const std::vector<size_t>& order, size_t next,
                  uint64_t taken, uint32_t units, std::vector<uint32_t>& starts) {
  if (next == order.size()) return true;
  const Extent& one = extents[order[next]];
  // Of equal ones the later lies behind: their places could be exchanged.
  uint32_t first = 0;
  if (next > 0) {
    const Extent& before = extents[order[next - 1]];
    if (before.units == one.units && before.starts == one.starts)
      first = starts[order[next - 1]] + 1;
  }
  for (const uint32_t start : one.starts) {
    if (start < first || start + one.units > units) continue;
    const uint64_t mask = units_mask(start, one.units);
    if ((taken & mask) != 0) continue;
    starts[order[next]] = start;
    if (lay_out_from(extents, order, next + 1, taken | mask, units, starts)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<uint32_t>> lay_out(const std::vector<Extent>& extents, uint32_t units) {
  std::vector<uint32_t> starts(extents.size());
  if (units > k_most_units) return std::nullopt;
  uint32_t wanted = 0;
  for (const Extent& one : extents) {
    if (one.units == 0 || one.units > units) return std::nullopt;
    wanted += one.units;
    if (wanted > units) return std::nullopt;  // hence no more than `units` of them
  }
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // The largest first, of equal size those with the fewest places.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (extents[a].units != extents[b].units) return extents[a].units > extents[b].units;
    if (extents[a].starts.size() != extents[b].starts.size())
      return extents[a].starts.size() < extents[b].starts.size();
    return extents[a].starts < extents[b].starts;
  });
  if (!lay_out_from(extents, order, 0, 0, units, starts)) return std::nullopt;
  return starts;
}

bool slots_fit(const BinKind& kind, SlotCounts counts) {
  std::vector<Extent> extents;
  for (size_t type = 0; type < kind.slots.size(); ++type) {
    const uint32_t many = slots_in(counts, type);
    if (many > kind.slots[type].most) return false;
    for (uint32_t i = 0; i < many; ++i)
      extents.push_back({kind.slots[type].units, kind.slots[type].starts});
  }
  return lay_out(extents, kind.units).has_value();
}

size_t slot_of(const BinKind& kind, uint32_t mib) {
  size_t type = 0;
  while (type < kind.slots.size() && kind.slots[type].mib < mib) ++type;
  return type;
}

}  // namespace cufit::pack
