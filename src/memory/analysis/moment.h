// SPDX-License-Identifier: Apache-2.0
// What the allocator held at one moment of a recorded run, and how its free bytes lay. Counted from
// recorded addresses and segment events, not from the model.
#pragma once

#include <cstdint>

#include "memory/analysis/lifetimes.h"

namespace cufit::analysis {

struct Moment {
  uint32_t event = 0;
  uint64_t allocated_bytes = 0;
  uint64_t pending_bytes = 0;   // freed, waiting for other streams
  uint64_t reserved_bytes = 0;  // segments, private pools included
  uint64_t rounding_bytes = 0;  // allocated less requested, where the request is known
  uint64_t largest_free_bytes = 0;
  uint64_t inactive_split_bytes = 0;  // free, but in a segment that something alive pins
  uint64_t releasable_bytes = 0;      // segments that are free as a whole
  uint64_t private_reserved_bytes = 0, private_allocated_bytes = 0;  // of pools other than 0

  // 0 where the trace contradicts itself: see fits().
  uint64_t cached_bytes() const { return fits() ? reserved_bytes - used_bytes() : 0; }
  uint64_t used_bytes() const { return allocated_bytes + pending_bytes; }
  // What is in use lies inside what is reserved. False: the trace contradicts itself.
  bool fits() const { return used_bytes() <= reserved_bytes; }
};

// After `event`.
Moment moment_at(const memory::VerifiedRecording& verified, const Lifetimes& lifetimes,
                 uint32_t event);

}  // namespace cufit::analysis
