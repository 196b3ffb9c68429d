// SPDX-License-Identifier: Apache-2.0
// A cause that the text only hints at: a cure would be a guess, and a question decides.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "explain/explain.h"

namespace cufit::explain {

// Sets Cause::first of the first cause where it is no more than possible: to measure where it is
// about what a program of PyTorch's keeps on a GPU, else to its question. Pure.
void mark_question_first(std::vector<Cause>& causes, std::span<const std::string_view> clues,
                        const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
