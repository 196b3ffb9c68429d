// SPDX-License-Identifier: Apache-2.0
// Giving memory back to the driver: one block, enough oversize blocks for a request, or all of it.
#pragma once

#include "memory/allocator/device_state.h"

namespace cufit::memory {

// cudaFree of a free block that is a whole segment.
void release_block(DeviceState& state, BlockIndex block);

// With max_split_size set: releases one oversize block that would do, or several until their sum
// does. False if they do not suffice (they are gone nevertheless) or the setting is off.
struct AvailableBlocks {
  std::vector<BlockIndex> blocks;  // in the order of their release
  bool enough = false;
};
AvailableBlocks available_cached_blocks(DeviceState& state, const AllocParams& params);
bool release_available_cached_blocks(DeviceState& state, const AllocParams& params);

// Every whole free segment of the pool, and every whole free page of its expandable ones.
void release_blocks(DeviceState& state, BlockPool& pool);

// Completes all pending frees, then releases the default pools and those of private pools that
// nobody holds any more. `only`: of this private pool alone (empty_cache of a MemPool).
void release_cached_blocks(DeviceState& state, uint32_t only = 0);

// What release_blocks would give back now, pending frees not counted.
uint64_t releasable_bytes(const DeviceState& state, const BlockPool& pool);

}  // namespace cufit::memory
