// SPDX-License-Identifier: Apache-2.0
// Where the instances of a divided GPU lie: no unit of memory belongs to two.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fit/pack/bins.h"

namespace cufit::pack {

inline constexpr size_t k_most_slot_types = 8;  // of a kind
inline constexpr uint32_t k_most_units = 32;    // of a GPU

// How many instances of each type, 8 bits each.
using SlotCounts = uint64_t;
inline uint32_t slots_in(SlotCounts counts, size_t type) {
  return static_cast<uint32_t>(counts >> (8 * type) & 0xff);
}
inline SlotCounts one_slot(size_t type) { return uint64_t{1} << (8 * type); }

// One instance that is to be laid out.
struct Extent {
  uint32_t units = 0;
  std::vector<uint32_t> starts;
};
// The start of each, in their order; nullopt: they do not fit together. Exact.
std::optional<std::vector<uint32_t>> lay_out(const std::vector<Extent>& extents, uint32_t units);

// Whether so many instances fit together.
bool slots_fit(const BinKind& kind, SlotCounts counts);

}  // namespace cufit::pack
