// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/view.h"

#include "memory/analysis/categories.h"

namespace cufit::analysis {
namespace {

constexpr size_t k_stack_groups = 14;
constexpr size_t k_ooms = 64;

Grouping kinds_of(const std::vector<Category>& categories) {
  Grouping out;
  for (size_t i = 0; i < k_categories; ++i) out.keys.push_back(to_string(static_cast<Category>(i)));
  for (const Category category : categories) out.of_row.push_back(static_cast<uint8_t>(category));
  return out;
}

uint32_t peak_event(const Timeline& timeline) {
  if (timeline.events == 0) return 0;
  const Level& last = timeline.levels.back();
  size_t best = 0;
  for (size_t i = 1; i < last.max.size(); ++i)
    if (last.max[i] > last.max[best]) best = i;
  return last.at[best];
}

}  // namespace

View view_of(const memory::Snapshot& snapshot, const memory::VerifiedRecording& verified) {
  const memory::Recording& recording = verified.recording;
  const memory::Program& program = *verified.program;
  View out;
  out.device = verified.device;
  out.events = static_cast<uint32_t>(recording.events.size());
  out.lifetimes = lifetimes_of(snapshot, verified);
  out.steps = steps_of(snapshot, verified.device, out.lifetimes);
  out.segments = segment_ranges(recording, program);
  out.reserved = reserved_bytes(program);
  out.kinds = kinds_of(categories_of(snapshot, verified.device, out.lifetimes, out.steps));
  out.by_kind =
      timeline_of(out.lifetimes, out.kinds.of_row, static_cast<uint32_t>(out.kinds.keys.size()));
  out.stack_groups = stack_groups(out.lifetimes, peak_event(out.by_kind), k_stack_groups);
  out.by_stack = timeline_of(out.lifetimes, out.stack_groups.of_row,
                             static_cast<uint32_t>(out.stack_groups.stacks.size() + 1));
  out.ooms = oom_moments(snapshot, verified.device, recording, out.lifetimes, out.segments, k_ooms);
  out.settings = verified.settings;
  out.what_ifs = what_ifs(verified);
  return out;
}

}  // namespace cufit::analysis
