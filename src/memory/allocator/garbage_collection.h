// SPDX-License-Identifier: Apache-2.0
// garbage_collection_threshold: before a new segment is asked for and more than that share of the
// allowed memory is held, the whole free segments of the large pool that were not used for longest
// go back. Without a memory fraction it does nothing.
#pragma once

#include "memory/allocator/device_state.h"

namespace cufit::memory {

void garbage_collect_cached_blocks(DeviceState& state);

}  // namespace cufit::memory
