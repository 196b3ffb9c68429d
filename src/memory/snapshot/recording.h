// SPDX-License-Identifier: Apache-2.0
// What a replay reads: the events of one device's trace and the segments at its end, whatever file
// they came from. snapshot_recording.h makes it of a snapshot.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/allocator/caching_allocator.h"
#include "memory/snapshot/recorded_events.h"

namespace cufit::memory {

struct Recording {
  RecordedEvents events;  // oldest first
  // After the last event, by address. Block handles are not used.
  std::vector<SegmentView> final_segments;
  Settings settings;  // in force when it was recorded
  VersionProfile version;
  // Stacks of events that name torch.cuda.empty_cache(), in order.
  std::vector<uint32_t> emptying_stacks;
  bool has_native_stacks = false;     // with frames of C++
  bool releases_have_stacks = false;  // of whoever asked for them: torch 2.3
};

}  // namespace cufit::memory
