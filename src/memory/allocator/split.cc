// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/split.h"

namespace cufit::memory {

bool should_split(DeviceState& state, const AllocParams& params) {
  if (state.owner(*params.pool).options.no_split) return false;
  const uint64_t remaining = state.blocks[params.block].size - params.size;
  if (params.pool->is_small || params.expandable_active) return remaining >= k_min_block_size;
  return params.size < state.settings.max_split_size && remaining > k_small_size;
}

BlockIndex split_front(DeviceState& state, BlockIndex block, uint64_t size) {
  const BlockIndex front = state.blocks.create();  // may move the blocks: no reference before it
  PoolBlock& rest = state.blocks[block];
  PoolBlock& cut = state.blocks[front];
  cut.ptr = rest.ptr;
  cut.size = size;
  cut.pool = rest.pool;
  cut.stream = rest.stream;
  cut.expandable_segment = rest.expandable_segment;
  cut.mapped = rest.mapped;
  cut.prev = rest.prev;
  cut.next = block;
  if (cut.prev != k_none) state.blocks[cut.prev].next = front;
  rest.prev = front;
  rest.ptr += size;
  rest.size -= size;
  return front;
}

BlockIndex split_back(DeviceState& state, BlockIndex block, uint64_t size) {
  const BlockIndex back = state.blocks.create();
  PoolBlock& kept = state.blocks[block];
  PoolBlock& cut = state.blocks[back];
  cut.ptr = kept.ptr + size;
  cut.size = kept.size - size;
  cut.pool = kept.pool;
  cut.stream = kept.stream;
  cut.expandable_segment = kept.expandable_segment;
  cut.mapped = kept.mapped;
  cut.prev = block;
  cut.next = kept.next;
  if (cut.next != k_none) state.blocks[cut.next].prev = back;
  kept.next = back;
  kept.size = size;
  return back;
}

namespace {

// A neighbour, in no pool any more, becomes part of the block.
void join_blocks(DeviceState& state, BlockIndex dst, BlockIndex src) {
  PoolBlock& to = state.blocks[dst];
  const PoolBlock& from = state.blocks[src];
  if (to.prev == src) {
    to.ptr = from.ptr;
    to.prev = from.prev;
    if (to.prev != k_none) state.blocks[to.prev].next = dst;
  } else {
    to.next = from.next;
    if (to.next != k_none) state.blocks[to.next].prev = dst;
  }
  to.size += from.size;
  state.blocks.destroy(src);
}

}  // namespace

void try_merge_blocks(DeviceState& state, BlockIndex dst, BlockIndex src) {
  if (src == k_none) return;
  PoolBlock& to = state.blocks[dst];
  PoolBlock& from = state.blocks[src];
  if (from.state != BlockUse::inactive || from.mapped != to.mapped) return;
  if (from.mapped) {
    from.pool->erase_from_blocks(from, src);
  } else {
    from.pool->erase_from_unmapped(from, src);
  }
  join_blocks(state, dst, src);
}

void free_block(DeviceState& state, BlockIndex index) {
  PoolBlock& block = state.blocks[index];
  block.state = BlockUse::inactive;
  block.other_streams = false;
  state.stats.active_bytes.decrease(block.size);
  BlockPool& pool = *block.pool;
  const auto joins = [&](BlockIndex other) {
    return other != k_none && state.blocks[other].state == BlockUse::inactive &&
           state.blocks[other].mapped == block.mapped;
  };
  const bool joins_next = joins(block.next);
  // One of the neighbours lends its place among the free blocks.
  if (joins_next) try_merge_blocks(state, index, block.prev);
  const BlockIndex lender = joins_next ? block.next : block.prev;
  if (!joins(lender)) {
    pool.insert_into_blocks(block, index);
    return;
  }
  const FreeBlocks::Position place = pool.blocks[block.stream].find(lender);
  join_blocks(state, index, lender);
  pool.replace_in_blocks(place, block, index);
}

}  // namespace cufit::memory
