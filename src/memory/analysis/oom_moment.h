// SPDX-License-Identifier: Apache-2.0
// An out-of-memory in numbers: what was asked, what was held, and how the free bytes inside the
// segments lay. Counted from rows and ranges; no model, nothing inferred.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/analysis/lifetimes.h"
#include "memory/analysis/segment_ranges.h"

namespace cufit::analysis {

struct FreeSpace {
  uint64_t bytes = 0;
  uint64_t largest = 0;
  uint32_t pieces = 0;
};

struct OomMoment {
  uint32_t event = 0;
  uint64_t rounded_bytes = 0;  // the request
  uint64_t segment_bytes = 0;  // what was asked of the driver for it
  uint64_t allocated = 0, pending = 0, reserved = 0;
  std::optional<uint64_t> device_free;  // as cudaMemGetInfo said
  FreeSpace free;                       // in all segments
  FreeSpace usable;                     // in those of the request's stream, pool and size class
};

// `event`: of an out-of-memory. Leaves device_free out.
OomMoment oom_moment_at(const memory::Recording& recording, uint32_t event,
                        const Lifetimes& lifetimes, std::span<const SegmentRange> segments);

// At most `limit` moments, the first ones.
std::vector<OomMoment> oom_moments(const memory::Snapshot& snapshot, uint32_t device,
                                   const memory::Recording& recording, const Lifetimes& lifetimes,
                                   std::span<const SegmentRange> segments, size_t limit);

}  // namespace cufit::analysis
