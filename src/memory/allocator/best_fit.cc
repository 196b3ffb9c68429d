// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/best_fit.h"

#include "memory/allocator/expandable_segment.h"

namespace cufit::memory {
namespace {

const PoolBlock& block_at(const DeviceState& state, const FreeBlocks& blocks,
                          FreeBlocks::Position at) {
  return state.blocks[blocks.at(at)];
}

// An expandable block counts with the space that it can grow into, so that a hole inside the
// segment is preferred to its end. PyTorch steps on as long as the next candidate is smaller by
// that measure.
FreeBlocks::Position smallest_expandable(const DeviceState& state, const FreeBlocks& blocks,
                                         FreeBlocks::Position at) {
  FreeBlocks::Position next = blocks.next(at);
  while (block_at(state, blocks, at).expandable_segment != k_none && !blocks.at_end(next) &&
         expandable_size(state, block_at(state, blocks, next)) <
             expandable_size(state, block_at(state, blocks, at))) {
    at = next;
    next = blocks.next(at);
  }
  return at;
}

}  // namespace

FreeBlocks::Position best_fit(DeviceState& state, const AllocParams& params) {
  const FreeBlocks& blocks = params.pool->free_blocks(params.stream);
  FreeBlocks::Position at = blocks.lower_bound(params.size, 0);
  if (blocks.at_end(at)) return at;
  if (block_at(state, blocks, at).expandable_segment != k_none) {
    if (params.expandable_active) {
      at = smallest_expandable(state, blocks, at);
    } else {
      while (!blocks.at_end(at) && block_at(state, blocks, at).expandable_segment != k_none)
        at = blocks.next(at);
      if (blocks.at_end(at)) return at;
    }
  }
  const uint64_t found = block_at(state, blocks, at).size;
  const uint64_t max_split = state.settings.max_split_size;
  if (params.size < max_split && found >= max_split) return blocks.end();
  if (params.size >= max_split && found >= params.size + state.settings.max_non_split_rounding_size)
    return blocks.end();
  return at;
}

uint64_t largest_free(const DeviceState& state, const FreeBlocks& blocks) {
  FreeBlocks::Position at = blocks.lower_bound(UINT64_MAX, UINT64_MAX);
  return blocks.step_back(at) ? block_at(state, blocks, at).size : 0;
}

}  // namespace cufit::memory
