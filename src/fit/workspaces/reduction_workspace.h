// SPDX-License-Identifier: Apache-2.0
// What a sum over the rows of a matrix (the gradient of a bias, mostly) or their greatest value
// asks for: when the columns alone cannot fill the GPU, several thread blocks share a column and
// leave partial results. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

// The numbers of a call of `reduce_rows`: rows, columns, bytes of a partial result (4 where it is
// not said). `multiprocessors` of the GPU. {0, 0}: none, not those numbers, or beyond what any
// machine has.
SizeAt reduction_workspace(std::span<const uint64_t> numbers, uint64_t multiprocessors);

}  // namespace cufit::fit
