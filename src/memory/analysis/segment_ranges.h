// SPDX-License-Identifier: Apache-2.0
// What the allocator held from the driver, as ranges of addresses with a life: from which event to
// which. And reserved bytes over time, of a recording or of a replay's log.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/analysis/lifetimes.h"
#include "memory/replay/replay_program.h"
#include "memory/snapshot/recording.h"

namespace cufit::analysis {

// A segment, or the pages that one segment_map added. Part of the latter may be unmapped: then the
// range ends and what stays begins anew at that event.
struct SegmentRange {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t from = k_before;  // event
  uint32_t to = k_never;     // no longer held from this event on
  uint32_t pool = 0;
  bool is_small = false;
  bool is_expandable = false;
};

// By `from`, those of the beginning first.
std::vector<SegmentRange> segment_ranges(const memory::Recording& recording,
                                         const memory::Program& program);

// A value that holds from an event to the next one listed; the first event is 0.
struct StepSeries {
  std::vector<uint32_t> events;
  std::vector<uint64_t> bytes;
};

StepSeries reserved_bytes(const memory::Program& program);
StepSeries reserved_bytes(std::span<const memory::SegmentEvent> log,
                          const memory::Program& program);

}  // namespace cufit::analysis
