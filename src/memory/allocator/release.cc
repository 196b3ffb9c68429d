// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/release.h"

#include <algorithm>

#include "memory/allocator/expandable_segment.h"
#include "memory/allocator/split.h"

namespace cufit::memory {
namespace {

bool is_expandable(const PoolBlock& block) { return block.expandable_segment != k_none; }

// Every event has passed: the blocks return to their pools in the order in which they were freed.
// PyTorch goes stream by stream in a hash map's order, which no trace tells; it matters only for
// the ages of blocks, since joining gives the same blocks in any order.
void synchronize_and_free_events(DeviceState& state, uint32_t only) {
  std::vector<BlockHandle> left;
  for (const BlockHandle& handle : state.pending) {
    if (!is_pending(state, handle)) continue;
    if (only != 0 && state.blocks[handle.block].pool->owner != only) {
      left.push_back(handle);
    } else {
      free_block(state, handle.block);
    }
  }
  state.pending = std::move(left);
}

}  // namespace

void release_block(DeviceState& state, BlockIndex index) {
  const PoolBlock& block = state.blocks[index];
  block.pool->erase_from_blocks(block, index);
  state.memory->cuda_free(block.ptr, block.size);
  state.stats.reserved_bytes.decrease(block.size);
  state.stats.segments.decrease(1);
  ++state.stats.cuda_frees;
  state.record(SegmentAction::segment_free, block.ptr, block.size, block.stream);
  state.blocks.destroy(index);
}

AvailableBlocks available_cached_blocks(DeviceState& state, const AllocParams& params) {
  AvailableBlocks available;
  const uint64_t max_split = state.settings.max_split_size;
  if (max_split == k_no_max_split) return available;
  const uint64_t wanted = std::max(params.size, max_split);
  const FreeBlocks& blocks = params.pool->free_blocks(params.stream);
  // A split block cannot be given to cudaFree. PyTorch has none of this size as long as
  // max_split_size_mb is not below large_segment_size_mb.
  const auto releasable = [&](const PoolBlock& block) {
    return !is_expandable(block) && !block.is_split();
  };
  FreeBlocks::Position at = blocks.lower_bound(wanted, 0);
  if (!blocks.at_end(at) && releasable(state.blocks[blocks.at(at)])) {
    available.blocks.push_back(blocks.at(at));
    available.enough = true;
    return available;
  }
  uint64_t released = 0;  // the largest first, until they suffice
  while (released < wanted && blocks.step_back(at) &&
         state.blocks[blocks.at(at)].size >= max_split) {
    const PoolBlock& block = state.blocks[blocks.at(at)];
    if (!releasable(block)) continue;
    released += block.size;
    available.blocks.push_back(blocks.at(at));
  }
  available.enough = released >= wanted;
  return available;
}

bool release_available_cached_blocks(DeviceState& state, const AllocParams& params) {
  const AvailableBlocks available = available_cached_blocks(state, params);
  for (const BlockIndex block : available.blocks) release_block(state, block);
  return available.enough;
}

void release_blocks(DeviceState& state, BlockPool& pool) {
  std::vector<BlockIndex> to_unmap;
  for (const BlockIndex index : in_set_order(pool, state.streams)) {
    const PoolBlock& block = state.blocks[index];
    if (is_expandable(block)) {
      to_unmap.push_back(index);
    } else if (!block.is_split()) {
      release_block(state, index);
    }
  }
  for (const BlockIndex index : to_unmap) {
    unmap_block(state, index);
    if (!state.blocks[index].mapped && !state.blocks[index].is_split())
      release_expandable_segment(state, index);
  }
}

void release_cached_blocks(DeviceState& state, uint32_t only) {
  synchronize_and_free_events(state, only);
  if (only == 0) {
    release_blocks(state, state.pools[0]->large_blocks);
    release_blocks(state, state.pools[0]->small_blocks);
  }
  for (size_t i = 1; i < state.pools.size(); ++i) {
    PrivatePool& pool = *state.pools[i];
    if (pool.use_count > 0 || (only != 0 && i != only)) continue;
    release_blocks(state, pool.small_blocks);
    release_blocks(state, pool.large_blocks);
  }
}

uint64_t releasable_bytes(const DeviceState& state, const BlockPool& pool) {
  uint64_t bytes = 0;
  for (const BlockIndex index : in_set_order(pool, state.streams)) {
    const PoolBlock& block = state.blocks[index];
    if (is_expandable(block)) {
      bytes += unmappable_bytes(state, block);
    } else if (!block.is_split()) {
      bytes += block.size;
    }
  }
  return bytes;
}

}  // namespace cufit::memory
