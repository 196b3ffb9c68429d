// SPDX-License-Identifier: Apache-2.0
#include "analysis/view.h"

#include "analysis/categories.h"

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

View view_of(const memory::Snapshot& snapshot, const memory::Study& study) {
  const memory::Recording& recording = study.recording;
  const memory::Program& program = *study.program;
  View out;
  out.device = study.device;
  out.events = static_cast<uint32_t>(recording.events.size());
  out.lifetimes = lifetimes_of(snapshot, study);
  out.steps = steps_of(snapshot, study.device, out.lifetimes);
  out.segments = segment_ranges(recording, program);
  out.reserved = reserved_bytes(program);
  out.kinds = kinds_of(categories_of(snapshot, study.device, out.lifetimes, out.steps));
  out.by_kind =
      timeline_of(out.lifetimes, out.kinds.of_row, static_cast<uint32_t>(out.kinds.keys.size()));
  out.stack_groups = stack_groups(out.lifetimes, peak_event(out.by_kind), k_stack_groups);
  out.by_stack = timeline_of(out.lifetimes, out.stack_groups.of_row,
                             static_cast<uint32_t>(out.stack_groups.stacks.size() + 1));
  out.ooms = oom_moments(snapshot, study.device, recording, out.lifetimes, out.segments, k_ooms);
  out.settings = study.settings;
  out.what_ifs = what_ifs(study);
  return out;
}

}  // namespace cufit::analysis
