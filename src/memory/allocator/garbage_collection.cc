// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/garbage_collection.h"

#include "memory/allocator/release.h"

namespace cufit::memory {

void garbage_collect_cached_blocks(DeviceState& state) {
  const auto threshold = static_cast<uint64_t>(state.settings.garbage_collection_threshold *
                                               static_cast<double>(*state.allowed_memory_maximum));
  if (state.stats.reserved_bytes.current <= threshold) return;
  const uint64_t target = state.stats.reserved_bytes.current - threshold;

  BlockPool& pool = state.pools[0]->large_blocks;
  const auto age = [&](const PoolBlock& block) {
    return pool.get_free_blocks_call_count - block.gc_count_base;
  };
  // Expandable blocks count for the average age although they are never freed here.
  std::vector<BlockIndex> freeable;
  uint64_t total_age = 0;
  uint64_t count = 0;
  for (const BlockIndex index : in_set_order(pool, state.streams)) {
    const PoolBlock& block = state.blocks[index];
    if (block.is_split()) continue;
    total_age += age(block);
    ++count;
    if (block.expandable_segment == k_none) freeable.push_back(index);
  }
  uint64_t reclaimed = 0;
  bool block_freed = true;
  while (reclaimed < target && block_freed && count > 0) {
    const double age_threshold = static_cast<double>(total_age) / static_cast<double>(count);
    block_freed = false;
    std::vector<BlockIndex> kept;
    // A round ends with its last block, not when the target is reached.
    for (const BlockIndex index : freeable) {
      const PoolBlock& block = state.blocks[index];
      if (static_cast<double>(age(block)) < age_threshold) {
        kept.push_back(index);
        continue;
      }
      block_freed = true;
      reclaimed += block.size;
      total_age -= age(block);
      --count;
      release_block(state, index);
    }
    freeable = std::move(kept);
  }
}

}  // namespace cufit::memory
