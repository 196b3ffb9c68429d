// SPDX-License-Identifier: Apache-2.0
#include "memory/card_capacity.h"

namespace cufit::memory {
namespace {

// What the driver keeps of the nominal size where no report of this product is known: the middle of
// those that are (1.0 to 2.4 % without inline ECC).
constexpr double k_kept_by_driver = 0.015;
// After a training step: an H200 with torch 2.11 (CUDA 13.0) has 749 to 769 MiB.
constexpr uint64_t k_context = uint64_t{770} << 20;

}  // namespace

CardCapacity card_capacity(const knowledge::Gpu& gpu, const knowledge::Knowledge&) {
  CardCapacity card;
  card.total = static_cast<uint64_t>(gpu.memory_gb * (1 - k_kept_by_driver) * (1u << 30));
  card.context = card.total > k_context ? k_context : 0;
  return card;
}

}  // namespace cufit::memory
