// SPDX-License-Identifier: Apache-2.0
// Everything that the page of `cufit mem view` shows of one device, computed once: rows, levels of
// detail, segments, steps, the moments of out-of-memory with their numbers, what-if curves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/analysis/lifetimes.h"
#include "memory/analysis/oom_moment.h"
#include "memory/analysis/segment_ranges.h"
#include "memory/analysis/stack_groups.h"
#include "memory/analysis/steps.h"
#include "memory/analysis/timeline.h"
#include "memory/analysis/settings_curves.h"
#include "memory/snapshot/snapshot.h"

namespace cufit::analysis {

// A kind for each row: an index of `keys`.
struct Grouping {
  std::vector<std::string> keys;
  std::vector<uint8_t> of_row;
};

struct View {
  uint32_t device = 0;
  uint32_t events = 0;
  Lifetimes lifetimes;
  Steps steps;
  std::vector<SegmentRange> segments;
  StepSeries reserved;
  Grouping kinds;
  Timeline by_kind;
  StackGroups stack_groups;
  Timeline by_stack;  // the same levels, other parts
  std::vector<OomMoment> ooms;
  std::vector<WhatIf> what_ifs;
  std::string settings;  // as recorded; empty: the defaults
};

View view_of(const memory::Snapshot& snapshot, const memory::VerifiedRecording& verified);

}  // namespace cufit::analysis
