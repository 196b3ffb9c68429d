// SPDX-License-Identifier: Apache-2.0
// Which rule a size follows over the batch sizes at which it was traced, exactly: whole numbers of
// 128 bit, no floating point. Used by step_program.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

// `batches` ascending, one size for each; Size::traced is left to the caller. Sizes are at most
// 2^56 where they are bytes; a number that no rule can hold is `unclear`.
Size rule_for(std::span<const uint64_t> batches, std::span<const uint64_t> sizes);

}  // namespace cufit::fit
