// SPDX-License-Identifier: Apache-2.0
// The state in which a recording begins. The ring of a recording may have overflowed, or recording
// began late; then segments and blocks exist that no event created. They follow from the segments
// at the end, walked backwards through the segment events, and from frees without an alloc.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/snapshot/recording.h"

namespace cufit::memory {

struct InitialBlock {
  uint64_t address = 0;
  uint64_t requested_size = 0;
  uint64_t size = 0;      // 0: not known, since it is gone at the end
  uint32_t freed_at = 0;  // the event; of no meaning when the size is known
};

// Segments by address with blocks side by side; a block of `live` that lies in none is dropped. The
// size of a block that is gone at the end is its rounded size, and the rest up to its neighbour if
// no free block could be so small, or up to the first block that is cut from behind it.
// `call_events`: those of the recording's events that are calls of segments.
std::vector<SegmentView> initial_segments(const Recording& recording,
                                          const std::vector<uint32_t>& call_events,
                                          std::vector<InitialBlock> live);

}  // namespace cufit::memory
