// SPDX-License-Identifier: Apache-2.0
// What each allocation is for. A category that PyTorch or a tool wrote beside the event is taken as
// it is; otherwise it follows from stacks where there are any, and from when the allocation comes
// and goes:
//   parameters       made in set-up, while the model goes to the device, and kept (with buffers);
//                    else what is there before the optimizer first steps, and stays
//   gradients        freed by zero_grad; or of their sizes, made in a backward pass under way
//   optimizer_state  made inside the optimizer's step and kept
//   activations      made in a step and still there when the most allocations live: what the
//                    backward pass waits for, the batch included
//   temporaries      come and go within a pass
//   workspace        of cuBLAS, by its known sizes
//   private_pools    in the pool of a CUDA graph or a MemPool
//   kept             made in a step and kept beyond the next one
//   unknown          nothing says it
#pragma once

#include <cstdint>
#include <vector>

#include "memory/analysis/steps.h"

namespace cufit::analysis {

enum class Category : uint8_t {
  parameters,
  gradients,
  optimizer_state,
  activations,
  temporaries,
  workspace,
  private_pools,
  kept,
  unknown,
};
constexpr size_t k_categories = 9;
const char* to_string(Category category);

// By row of `lifetimes`.
std::vector<Category> categories_of(const memory::Snapshot& snapshot, uint32_t device,
                                    const Lifetimes& lifetimes, const Steps& steps);

}  // namespace cufit::analysis
