// SPDX-License-Identifier: Apache-2.0
// Levels of detail of a device's allocated bytes over its events, so that a page draws a trace of
// millions of events from a few thousand numbers. A bucket holds the smallest and the largest value
// in a run of events and the event of the largest; a bucket of the next level joins k_fan_out of
// them. The parts (categories, stacks) are kept at the event of the largest value, so that a stack
// of areas adds up to what was allocated at one moment, not to a sum of peaks of different moments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/analysis/lifetimes.h"

namespace cufit::analysis {

constexpr uint32_t k_fan_out = 4;
constexpr uint32_t k_min_bucket = 64;        // events; below, a page adds the changes up itself
constexpr uint32_t k_max_buckets = 1 << 13;  // of the finest level

struct Level {
  uint32_t bucket_events = 0;
  std::vector<uint64_t> min, max;
  std::vector<uint32_t> at;  // the first event at which the value is `max`
};

struct Timeline {
  uint32_t events = 0;
  uint32_t groups = 0;
  std::vector<Level> levels;    // finest first, the last has at most k_fan_out buckets
  std::vector<uint64_t> parts;  // [bucket of levels[0]][group]: bytes at its event `at`
};

// `group_of` has one entry per row, each below `groups`. The value of event e is what is allocated
// after it (Lifetimes).
Timeline timeline_of(const Lifetimes& lifetimes, std::span<const uint8_t> group_of,
                     uint32_t groups);

}  // namespace cufit::analysis
