// SPDX-License-Identifier: Apache-2.0
// A trace that began late shows the parameter of each gradient and its optimizer states only as
// blocks of one size that stay; nothing tells them apart. But where every gradient has the same
// number of them (Adam: three), it does not matter which is which: the bytes are shared out.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/analysis/categories.h"

namespace cufit::analysis {

// Events [begin, end) are a zero_grad; what it frees are the gradients. Rows of the beginning that
// stay and are still unknown become parameters and optimizer_state, if nine tenths of the gradients
// agree on how many there are; what is over stays unknown.
void share_initial_model(const Lifetimes& lifetimes, uint32_t begin, uint32_t end,
                         std::vector<Category>& categories);

}  // namespace cufit::analysis
