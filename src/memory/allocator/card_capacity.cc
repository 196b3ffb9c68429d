// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/card_capacity.h"

#include <algorithm>

namespace cufit::memory {
namespace {

constexpr double k_card_capacity_gib = 1u << 30;
// What the driver keeps of a card that data/gpu_memory.toml does not know, from those that it does:
// 0.8 to 1.4 % of HBM cards, 0.3 to 0.6 GiB of GeForce and workstation cards from Turing on, and
// inline ECC takes a sixteenth.
constexpr double k_kept_share = 0.014;
constexpr double k_kept_gib = 0.5;
constexpr double k_inline_ecc_share = 1.0 / 16;

double reckoned_gib(const knowledge::Gpu& gpu) {
  if (gpu.ecc == "default_on_inline")
    return gpu.memory_gb * (1 - k_kept_share - k_inline_ecc_share);
  if (gpu.segment == "datacenter") return gpu.memory_gb * (1 - k_kept_share);
  return std::max(gpu.memory_gb * (1 - k_kept_share) - k_kept_gib, 0.0);
}

}  // namespace

CardCapacity card_capacity(const knowledge::Gpu& gpu, const knowledge::Knowledge& knowledge) {
  CardCapacity card;
  const knowledge::GpuMemoryRow* row = knowledge.find_gpu_memory(gpu.name);
  card.measured = row != nullptr;
  card.total = static_cast<uint64_t>((row != nullptr ? row->total_gib : reckoned_gib(gpu)) *
                                     k_card_capacity_gib);
  card.context = std::min(knowledge.context_bytes(gpu.cc), card.total);
  return card;
}

}  // namespace cufit::memory
