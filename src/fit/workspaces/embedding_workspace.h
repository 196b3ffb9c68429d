// SPDX-License-Identifier: Apache-2.0
// What the gradient of an embedding asks for beside itself. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

// The numbers of a call of `embedding`: indices, rows of the table, values of a row, bytes of a
// value in a sum. `of_bags`: of embedding_bag, which sorts few indices, too. {0, 0}: none, not
// those numbers, or beyond what any machine has.
SizeAt embedding_workspace(std::span<const uint64_t> numbers, bool of_bags = false);

}  // namespace cufit::fit
