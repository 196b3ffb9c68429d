// SPDX-License-Identifier: Apache-2.0
// Cutting blocks and joining them again. Everywhere else it holds that two free neighbours of the
// same mapped state are one block.
#pragma once

#include "memory/allocator/device_state.h"

namespace cufit::memory {

// Whether the rest of `params.block` goes back to the pool.
bool should_split(DeviceState& state, const AllocParams& params);

// Cuts `block` after `size` bytes. The new block is the low part (front) or the high part (back);
// `block` keeps the other. Neither is put into a pool.
BlockIndex split_front(DeviceState& state, BlockIndex block, uint64_t size);
BlockIndex split_back(DeviceState& state, BlockIndex block, uint64_t size);

// Makes `src`, a neighbour of `dst` or none, part of `dst` if it is free and in the same mapped
// state; takes it out of its pool.
void try_merge_blocks(DeviceState& state, BlockIndex dst, BlockIndex src);

// The end of free: joins the neighbours and gives the block to its pool.
void free_block(DeviceState& state, BlockIndex block);

}  // namespace cufit::memory
