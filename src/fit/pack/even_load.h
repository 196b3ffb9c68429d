// SPDX-License-Identifier: Apache-2.0
// An assignment made better by hand: jobs are moved off the fullest GPU, or exchanged with a smaller
// one of another, as long as that leaves more there. It proves nothing. Used by assignment.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/pack/bins.h"

namespace cufit::pack {

// `bin_of` places all `items`; so does the result.
std::vector<uint32_t> with_even_load(const Problem& problem, const std::vector<uint32_t>& items,
                                     const std::vector<uint32_t>& bin_of);

}  // namespace cufit::pack
