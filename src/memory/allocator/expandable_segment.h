// SPDX-License-Identifier: Apache-2.0
// expandable_segments:True: address space for the whole card is reserved once per stream and pool,
// and memory is mapped into it page by page (2 MiB for the small pool, large_segment_size for the
// large one), so that a segment grows at its end instead of a new one beside it.
#pragma once

#include "memory/allocator/device_state.h"

namespace cufit::memory {

// A mapped free block of at least params.size, out of its pool, or k_none when memory ran out;
// pages mapped before the failure stay in the pool.
BlockIndex try_allocate_expandable_block(DeviceState& state, const AllocParams& params);

// Gives the whole pages inside a free block back; its ends stay free blocks.
void unmap_block(DeviceState& state, BlockIndex block);
// Of a segment that is one unmapped block.
void release_expandable_segment(DeviceState& state, BlockIndex block);

// Bytes of `block` that unmap_block would give back.
uint64_t unmappable_bytes(const DeviceState& state, const PoolBlock& block);

// What a block can grow to: with the unmapped space after it.
inline uint64_t expandable_size(const DeviceState& state, const PoolBlock& block) {
  if (block.next == k_none || state.blocks[block.next].mapped) return block.size;
  return block.size + state.blocks[block.next].size;
}

}  // namespace cufit::memory
