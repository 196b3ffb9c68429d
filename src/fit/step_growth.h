// SPDX-License-Identifier: Apache-2.0
// Memory that every step leaves behind: losses kept with their graph, outputs that are collected.
// Used by prediction.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/step_program.h"

namespace cufit::fit {

// Bytes that each of the last two traced steps left beside what the one before it had left; 0:
// less than a MiB, not the same twice, or batches are not of one size. `sizes`: sizes_at().
uint64_t growth_per_step(const StepProgram& program, const std::vector<SizeAt>& sizes);

}  // namespace cufit::fit
