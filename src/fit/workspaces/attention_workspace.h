// SPDX-License-Identifier: Apache-2.0
// What the backward kernel of scaled dot product attention asks for beside its results: sums in
// fp32, freed at once. Used by workspaces.cc.
#pragma once

#include <cstdint>
#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

// The numbers of a call of `sdpa`: kernel, bits, batch, heads, length of queries and of keys, size
// of a head, heads of keys; {0, 0}: forward, not those, or beyond what any machine has.
SizeAt attention_workspace(std::span<const uint64_t> numbers);

// Before it: the memory-efficient kernel's gradient times output, in fp32 alone. The same numbers.
SizeAt attention_product(std::span<const uint64_t> numbers);

}  // namespace cufit::fit
