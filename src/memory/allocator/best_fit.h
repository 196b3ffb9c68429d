// SPDX-License-Identifier: Apache-2.0
// DeviceCachingAllocator::get_free_block: which free block serves a request.
#pragma once

#include <optional>

#include "memory/allocator/device_state.h"

namespace cufit::memory {

// The smallest block of the pool and stream that is large enough, at the lowest address; none if
// that one block is against the rules for oversize blocks, whatever comes after it.
FreeBlocks::Position best_fit(DeviceState& state, const AllocParams& params);

// 0 when there is none.
uint64_t largest_free(const DeviceState& state, const FreeBlocks& blocks);

}  // namespace cufit::memory
