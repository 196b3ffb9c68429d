// SPDX-License-Identifier: Apache-2.0
// Where forward passes turn into backward passes: the moments at which more allocations of a step
// live than before and after, by half of the step's range at least. Each micro-batch has one, and
// so has each layer that is recomputed.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/analysis/lifetimes.h"

namespace cufit::analysis {

// `counts[e]` is how many allocations live after event begin + e. Adds the events of the turning
// points, in order. A rise that the trace cuts off turns at its highest point.
void add_turning_points(const std::vector<uint32_t>& counts, uint32_t begin,
                        std::vector<uint32_t>& out);

}  // namespace cufit::analysis
