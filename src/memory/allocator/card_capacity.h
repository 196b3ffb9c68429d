// SPDX-License-Identifier: Apache-2.0
// How much of a card PyTorch's allocator can have: what CUDA calls its total, less the process's
// CUDA context and libraries. Display and other processes come off as well; only a live machine
// knows them.
#pragma once

#include <cstdint>

#include "knowledge/knowledge.h"

namespace cufit::memory {

struct CardCapacity {
  uint64_t total = 0;     // bytes, as cudaMemGetInfo has it; sizes expandable segments
  uint64_t context = 0;   // bytes of one training process outside the allocator
  bool measured = false;  // of this product; else from its nominal size
  uint64_t usable() const { return total - context; }
};

CardCapacity card_capacity(const knowledge::Gpu& gpu, const knowledge::Knowledge& knowledge);

}  // namespace cufit::memory
