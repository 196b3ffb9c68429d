// SPDX-License-Identifier: Apache-2.0
// What cuFFT asks for while it transforms. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

// `numbers`: 0 from real values, 1 to real values, 2 between complex ones; bits of a real value;
// how many transforms; their lengths. Nothing for other numbers. Bytes.
SizeAt fft_workspace(std::span<const uint64_t> numbers);

}  // namespace cufit::fit
