// SPDX-License-Identifier: Apache-2.0
// What no assignment can do better than, from sizes alone.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/pack/bins.h"

namespace cufit::pack {

// The least that an item takes on any kind; k_never: it runs on none.
uint32_t least_mib(const Problem& problem, uint32_t item);
// Items that some GPU of the problem can hold alone, the smallest first.
std::vector<uint32_t> possible_items(const Problem& problem);
// The order by size is the same on each kind: in place of an item any before it can be placed.
bool ordered_alike(const Problem& problem, const std::vector<uint32_t>& items);

// The fewest GPUs that hold all `items`: by their sum, and by how many of a size one GPU can hold
// (dual feasible functions, Fekete and Schepers 2001: rounded so that no GPU's jobs exceed one).
uint32_t fewest_bound(const Problem& problem, const std::vector<uint32_t>& items);
// The most of `items` that all GPUs hold, in the same way.
uint32_t placed_bound(const Problem& problem, const std::vector<uint32_t>& items);
// The most that the fullest GPU can have left with all `items` placed.
uint32_t headroom_bound(const Problem& problem, const std::vector<uint32_t>& items);
// Some of `items`, the smallest of them first, are placed: what the largest GPU has left beside that.
uint32_t headroom_of_any_choice(const Problem& problem, const std::vector<uint32_t>& items);

}  // namespace cufit::pack
