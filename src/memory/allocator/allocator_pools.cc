// SPDX-License-Identifier: Apache-2.0
// CachingAllocator: private pools, and the state as a whole in and out.
#include <algorithm>

#include "memory/allocator/caching_allocator.h"
#include "memory/allocator/release.h"
#include "memory/allocator/split.h"

namespace cufit::memory {

uint32_t CachingAllocator::create_pool(const PoolOptions& options) {
  auto pool = std::make_unique<PrivatePool>(state_.blocks);
  const auto index = static_cast<uint32_t>(state_.pools.size());
  pool->options = options;
  pool->small_blocks.is_small = true;
  pool->small_blocks.owner = pool->large_blocks.owner = index;
  state_.pools.push_back(std::move(pool));
  return index;
}

void CachingAllocator::retain_pool(uint32_t pool) { ++state_.pools[pool]->use_count; }

void CachingAllocator::begin_allocate_to_pool(uint32_t pool, std::optional<StreamIndex> only,
                                              bool is_capture) {
  retain_pool(pool);
  underway_.push_back({pool, only, is_capture});
}

void CachingAllocator::end_allocate_to_pool(uint32_t pool) {
  for (size_t i = underway_.size(); i-- > 0;) {
    if (underway_[i].pool != pool) continue;
    underway_.erase(underway_.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
}

void CachingAllocator::release_pool(uint32_t pool) {
  int64_t& use_count = state_.pools[pool]->use_count;
  if (use_count > 0) --use_count;
}

uint32_t CachingAllocator::pool_for(StreamIndex stream) const {
  const size_t count = underway_.size();
  for (size_t i = 0; i < count; ++i) {
    const PoolUnderway& pool = underway_[state_.version.newest_pool_first ? count - 1 - i : i];
    if (!pool.only || *pool.only == stream) return pool.pool;
  }
  return 0;
}

bool CachingAllocator::may_release() const {
  if (!state_.version.only_capture_blocks_release) return underway_.empty();
  return std::none_of(underway_.begin(), underway_.end(),
                      [](const PoolUnderway& pool) { return pool.is_capture; });
}

namespace {

// A block without neighbours, in no pool.
BlockIndex lone_block(DeviceState& state, const SegmentView& view, StreamIndex stream) {
  const BlockIndex index = state.blocks.create();
  PoolBlock& block = state.blocks[index];
  block.ptr = view.address;
  block.size = view.size;
  block.pool = &state.pools[view.pool]->for_size(view.is_small);
  block.stream = stream;
  return index;
}

// The unmapped block that an adopted range lies in: of a known reservation, or of a new one that
// starts with it.
BlockIndex unmapped_around(DeviceState& state, const SegmentView& view, StreamIndex stream) {
  BlockPool& pool = state.pools[view.pool]->for_size(view.is_small);
  for (const UnmappedBlock& unmapped : pool.unmapped_blocks(stream)) {
    const PoolBlock& block = state.blocks[unmapped.block];
    if (view.address >= block.ptr && view.address + view.size <= block.ptr + block.size)
      return unmapped.block;
  }
  ExpandableSegment segment;
  segment.page = view.is_small ? k_small_buffer : state.settings.large_segment_size;
  segment.address = view.address;
  segment.size =
      round_up(std::max(state.total_memory + state.total_memory / 8, view.size), segment.page);
  segment.live = true;
  state.expandable_segments.push_back(segment);
  const BlockIndex index = lone_block(state, view, stream);
  PoolBlock& block = state.blocks[index];
  block.size = segment.size;
  block.expandable_segment = static_cast<uint32_t>(state.expandable_segments.size() - 1);
  block.mapped = false;
  pool.insert_into_unmapped(block, index);
  return index;
}

// The adopted range as one mapped block, in no pool.
BlockIndex map_adopted(DeviceState& state, const SegmentView& view, StreamIndex stream) {
  const BlockIndex index = unmapped_around(state, view, stream);
  BlockPool& pool = *state.blocks[index].pool;
  pool.erase_from_unmapped(state.blocks[index], index);
  if (state.blocks[index].ptr < view.address) {
    const BlockIndex low = split_front(state, index, view.address - state.blocks[index].ptr);
    pool.insert_into_unmapped(state.blocks[low], low);
  }
  if (state.blocks[index].size > view.size) {
    const BlockIndex high = split_back(state, index, view.size);
    pool.insert_into_unmapped(state.blocks[high], high);
  }
  state.blocks[index].mapped = true;
  return index;
}

}  // namespace

void CachingAllocator::adopt(SegmentView& view) {
  const StreamIndex stream_index = stream(view.stream);
  BlockIndex rest = view.is_expandable ? map_adopted(state_, view, stream_index)
                                       : lone_block(state_, view, stream_index);
  DeviceStats& stats = state_.stats;
  stats.reserved_bytes.increase(view.size);
  if (!view.is_expandable) stats.segments.increase(1);
  for (BlockView& part : view.blocks) {
    const bool last = &part == &view.blocks.back();
    const BlockIndex index = last ? rest : split_front(state_, rest, part.size);
    PoolBlock& block = state_.blocks[index];
    block.serial = next_serial_++;
    block.state = part.state;
    block.requested_size = part.requested_size;
    part.handle = {index, block.serial};
    if (part.state == BlockUse::inactive) {
      // Free neighbours are always one block; a contradictory trace may list them apart. What is
      // left of the range is in no pool yet, so it can be joined only once it is the last part.
      try_merge_blocks(state_, index, block.prev);
      if (last) try_merge_blocks(state_, index, block.next);
      block.pool->insert_into_blocks(block, index);
      continue;
    }
    stats.active_bytes.increase(part.size);
    if (part.state == BlockUse::pending_free) {
      state_.pending.push_back(part.handle);
    } else {
      stats.allocated_bytes.increase(part.size);
      stats.requested_bytes.increase(part.requested_size);
    }
  }
}

std::vector<SegmentView> CachingAllocator::segments() const {
  std::vector<SegmentView> all;
  const BlockStore& blocks = state_.blocks;
  for (size_t slot = 0; slot < blocks.slots(); ++slot) {
    const PoolBlock& head = blocks[static_cast<BlockIndex>(slot)];
    const bool starts =
        head.in_use && head.mapped && (head.prev == k_none || !blocks[head.prev].mapped);
    if (!starts) continue;
    SegmentView segment;
    segment.address = head.ptr;
    segment.stream = state_.streams.value(head.stream);
    segment.pool = head.pool->owner;
    segment.is_small = head.pool->is_small;
    segment.is_expandable = head.expandable_segment != k_none;
    for (auto at = static_cast<BlockIndex>(slot); at != k_none && blocks[at].mapped;
         at = blocks[at].next) {
      const PoolBlock& block = blocks[at];
      segment.size += block.size;
      segment.blocks.push_back({block.ptr,
                                block.size,
                                block.state == BlockUse::allocated ? block.requested_size : 0,
                                block.state,
                                {at, block.serial}});
    }
    all.push_back(std::move(segment));
  }
  std::sort(all.begin(), all.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
  return all;
}

uint64_t CachingAllocator::releasable() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < state_.pools.size(); ++i) {
    const PrivatePool& pool = *state_.pools[i];
    if (i != 0 && pool.use_count > 0) continue;
    bytes += releasable_bytes(state_, pool.small_blocks);
    bytes += releasable_bytes(state_, pool.large_blocks);
  }
  return bytes;
}

}  // namespace cufit::memory
