// SPDX-License-Identifier: Apache-2.0
// A quick assignment that leaves little: GPU after GPU gets the largest job that is left and those
// beside it that fill it best (minimum bin slack, Gupta and Ho 1999). It finds much that a search by
// single jobs would come to late; it proves nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fit/pack/bins.h"

namespace cufit::pack {

// The bin of each item of the problem, all `items` placed on `bins`, of each of which `reserve` MiB
// stay free; nullopt: it did not come out. Of GPUs that are not divided. Adds its steps to `nodes`.
std::optional<std::vector<uint32_t>> tight_fill(const Problem& problem, std::vector<uint32_t> items,
                                                std::vector<uint32_t> bins, uint32_t reserve,
                                                uint64_t& nodes);

}  // namespace cufit::pack
