// SPDX-License-Identifier: Apache-2.0
// What a replay reads: the events of one device's trace and the segments at its end, whatever file
// they came from. The snapshot reader's rows are turned into this by whoever has both.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/caching_allocator.h"

namespace cufit::memory {

enum class RecordedAction : uint8_t {
  alloc,  // size as requested
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,    // size: the rounded request; no address
  other,  // snapshot, annotate: nothing that the allocator does
};

struct RecordedEvent {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t pool = 0;  // 0: the default pool, else numbers of the caller's choice from 1
  RecordedAction action = RecordedAction::other;
};

struct Recording {
  std::vector<RecordedEvent> events;  // oldest first
  // After the last event, by address. Block handles are not used.
  std::vector<SegmentView> final_segments;
  Settings settings;  // in force when it was recorded
  VersionProfile version;
};

}  // namespace cufit::memory
