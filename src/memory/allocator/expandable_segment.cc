// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/expandable_segment.h"

#include <algorithm>

#include "memory/allocator/split.h"

namespace cufit::memory {
namespace {

bool allocatable(const DeviceState& state, BlockIndex block) {
  return block != k_none && state.blocks[block].state == BlockUse::inactive;
}

bool has_available_address_space(const DeviceState& state, BlockIndex block, uint64_t size) {
  uint64_t bytes = 0;
  while (bytes < size && allocatable(state, block)) {
    bytes += state.blocks[block].size;
    block = state.blocks[block].next;
  }
  return bytes >= size;
}

uint32_t new_segment(DeviceState& state, uint64_t page) {
  ExpandableSegment segment;
  segment.page = page;
  // One eighth more than the card, so that holes do not use up the address space.
  segment.size = round_up(state.total_memory + state.total_memory / 8, page);
  segment.address = state.memory->reserve(segment.size);
  segment.live = true;
  std::vector<ExpandableSegment>& all = state.expandable_segments;
  size_t slot = 0;
  while (slot < all.size() && all[slot].live) ++slot;
  if (slot == all.size()) all.emplace_back();
  all[slot] = segment;
  return static_cast<uint32_t>(slot);
}

// The first run of free and unmapped blocks of the stream with room for `size`, by address.
BlockIndex find_expandable_block(DeviceState& state, const AllocParams& params) {
  for (const UnmappedBlock& unmapped : params.pool->unmapped_blocks(params.stream)) {
    BlockIndex candidate = unmapped.block;
    const BlockIndex before = state.blocks[candidate].prev;
    if (allocatable(state, before)) candidate = before;
    if (has_available_address_space(state, candidate, params.size)) return candidate;
  }
  const uint64_t page = params.pool->is_small ? k_small_buffer : state.settings.large_segment_size;
  const uint32_t segment = new_segment(state, page);
  const BlockIndex index = state.blocks.create();
  PoolBlock& block = state.blocks[index];
  block.ptr = state.expandable_segments[segment].address;
  block.size = state.expandable_segments[segment].size;
  block.pool = params.pool;
  block.stream = params.stream;
  block.expandable_segment = segment;
  block.mapped = false;
  params.pool->insert_into_unmapped(block, index);
  return index;
}

// Maps whole pages from the block's start, joins the result with its free neighbours and puts it
// into the pool.
bool map_block(DeviceState& state, BlockIndex index, uint64_t size) {
  BlockPool& pool = *state.blocks[index].pool;
  const ExpandableSegment& segment =
      state.expandable_segments[state.blocks[index].expandable_segment];
  const uint64_t address = state.blocks[index].ptr;
  const uint64_t offset = address - segment.address;
  const uint64_t bytes = round_up(offset + size, segment.page) - offset;
  if (!state.memory->map(address, bytes)) return false;

  pool.erase_from_unmapped(state.blocks[index], index);
  if (bytes < state.blocks[index].size) {
    const BlockIndex rest = split_back(state, index, bytes);
    pool.insert_into_unmapped(state.blocks[rest], rest);
  }
  PoolBlock& block = state.blocks[index];
  block.mapped = true;
  try_merge_blocks(state, index, block.prev);
  try_merge_blocks(state, index, block.next);
  pool.insert_into_blocks(block, index);

  state.stats.reserved_bytes.increase(bytes);
  ++state.stats.maps;
  state.record(SegmentAction::segment_map, address, bytes, block.stream);
  return true;
}

}  // namespace

uint64_t unmappable_bytes(const DeviceState& state, const PoolBlock& block) {
  const ExpandableSegment& segment = state.expandable_segments[block.expandable_segment];
  const uint64_t from = round_up(block.ptr - segment.address, segment.page);
  const uint64_t to = (block.ptr + block.size - segment.address) / segment.page * segment.page;
  return to > from ? to - from : 0;
}

BlockIndex try_allocate_expandable_block(DeviceState& state, const AllocParams& params) {
  const uint64_t size = params.size;
  BlockIndex candidate = find_expandable_block(state, params);
  if (!state.blocks[candidate].mapped &&
      !map_block(state, candidate, std::min(state.blocks[candidate].size, size)))
    return k_none;
  while (state.blocks[candidate].size < size) {
    const BlockIndex unmapped = state.blocks[candidate].next;
    if (unmapped == k_none) return k_none;  // larger than the whole reservation
    const uint64_t missing = size - state.blocks[candidate].size;
    if (!map_block(state, unmapped, std::min(missing, state.blocks[unmapped].size))) return k_none;
    candidate = unmapped;  // it took the old candidate in
  }
  params.pool->erase_from_blocks(state.blocks[candidate], candidate);
  return candidate;
}

void unmap_block(DeviceState& state, BlockIndex index) {
  const uint64_t bytes = unmappable_bytes(state, state.blocks[index]);
  if (bytes == 0) return;
  BlockPool& pool = *state.blocks[index].pool;
  const ExpandableSegment segment =
      state.expandable_segments[state.blocks[index].expandable_segment];
  const uint64_t from =
      segment.address + round_up(state.blocks[index].ptr - segment.address, segment.page);
  state.memory->unmap(from, bytes);
  pool.erase_from_blocks(state.blocks[index], index);
  if (state.blocks[index].ptr < from) {
    const BlockIndex head = split_front(state, index, from - state.blocks[index].ptr);
    pool.insert_into_blocks(state.blocks[head], head);
  }
  if (state.blocks[index].size > bytes) {
    const BlockIndex tail = split_back(state, index, bytes);
    pool.insert_into_blocks(state.blocks[tail], tail);
  }
  PoolBlock& block = state.blocks[index];
  block.mapped = false;
  try_merge_blocks(state, index, block.prev);
  try_merge_blocks(state, index, block.next);
  pool.insert_into_unmapped(block, index);

  state.stats.reserved_bytes.decrease(bytes);
  ++state.stats.unmaps;
  state.record(SegmentAction::segment_unmap, from, bytes, block.stream);
}

void release_expandable_segment(DeviceState& state, BlockIndex index) {
  const PoolBlock& block = state.blocks[index];
  ExpandableSegment& segment = state.expandable_segments[block.expandable_segment];
  state.memory->unreserve(segment.address, segment.size);
  segment.live = false;
  block.pool->erase_from_unmapped(block, index);
  state.blocks.destroy(index);
}

}  // namespace cufit::memory
