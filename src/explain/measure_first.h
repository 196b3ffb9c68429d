// SPDX-License-Identifier: Apache-2.0
// A shortage of memory that the text only hints at: a cure would be a guess, and measuring decides.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "explain/explain.h"

namespace cufit::explain {

// Sets Cause::measure_first where the first cause is no more than possible, is about what a program
// of PyTorch's keeps on a GPU, and has no step of its own for what the text says. Pure.
void mark_measure_first(std::vector<Cause>& causes, std::span<const std::string_view> clues,
                        const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
