// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "memory/analysis/oom_moment.h"
#include "memory/analysis/segment_ranges.h"
#include "memory/analysis/stack_groups.h"
#include "unit/memory/analysis/traces.h"

namespace cufit::analysis {
namespace segment_ranges_test {

using memory::Action;
using memory::RecordedEvent;

std::vector<SegmentRange> ranges_of(std::vector<RecordedEvent> events) {
  memory::Recording recording;
  recording.events = memory::RecordedEvents(std::move(events));
  memory::Program program = memory::compile_program(recording);
  program.initial.clear();  // nothing was there before
  return segment_ranges(recording, program);
}

RecordedEvent call(Action action, uint64_t address, uint64_t size) {
  RecordedEvent event;
  event.action = action;
  event.address = address;
  event.size = size;
  return event;
}

std::map<uint64_t, uint64_t> held_at(const std::vector<SegmentRange>& ranges, uint32_t event) {
  std::map<uint64_t, uint64_t> out;
  for (const SegmentRange& range : ranges)
    if ((range.from == k_before || range.from <= event) && range.to > event)
      out[range.address] = range.size;
  return out;
}

constexpr uint64_t k_page = 20u << 20;

TEST(SegmentRanges, SplitsWhatIsUnmappedInTheMiddle) {
  const auto ranges = ranges_of({call(Action::segment_map, 10 * k_page, 4 * k_page),
                                 call(Action::segment_unmap, 11 * k_page, 2 * k_page),
                                 call(Action::segment_map, 11 * k_page, k_page),
                                 call(Action::segment_unmap, 10 * k_page, 4 * k_page)});
  using Held = std::map<uint64_t, uint64_t>;
  EXPECT_EQ(held_at(ranges, 0), (Held{{10 * k_page, 4 * k_page}}));
  EXPECT_EQ(held_at(ranges, 1), (Held{{10 * k_page, k_page}, {13 * k_page, k_page}}));
  EXPECT_EQ(held_at(ranges, 2),
            (Held{{10 * k_page, k_page}, {11 * k_page, k_page}, {13 * k_page, k_page}}));
  EXPECT_TRUE(held_at(ranges, 3).empty());
}

TEST(SegmentRanges, LeavesOutWhatCannotBeARange) {
  EXPECT_TRUE(
      ranges_of({call(Action::segment_alloc, UINT64_MAX, 512), call(Action::segment_alloc, 512, 0),
                 call(Action::segment_free, 0, UINT64_MAX)})
          .empty());
}

// Ranges, the series of reserved bytes and the segments that the snapshot ends with say the same.
TEST(SegmentRanges, AgreeWithReservedBytesAndTheEnd) {
  for (const char* name :
       {"trace-varlen", "oom-varlen", "varlen-expandable", "varlen-ring", "streams", "graphs"}) {
    SCOPED_TRACE(name);
    const TestTrace& trace = real_trace(name);
    const auto ranges = segment_ranges(trace.verified.recording, *trace.verified.program);
    const StepSeries reserved = reserved_bytes(*trace.verified.program);
    ASSERT_EQ(reserved.events.size(), reserved.bytes.size());
    EXPECT_EQ(reserved.events.front(), 0u);
    for (size_t i = 0; i < reserved.events.size(); ++i) {
      uint64_t sum = 0;
      for (const auto& [address, size] : held_at(ranges, reserved.events[i])) sum += size;
      EXPECT_EQ(sum, reserved.bytes[i]) << "event " << reserved.events[i];
    }
    uint64_t end = 0;
    for (const memory::SegmentView& segment : trace.verified.recording.final_segments)
      end += segment.size;
    EXPECT_EQ(reserved.bytes.back(), end);
  }
}

TEST(OomMoment, BlocksAndFreePiecesFillWhatIsReserved) {
  const TestTrace& trace = real_trace("oom-varlen");
  const auto ranges = segment_ranges(trace.verified.recording, *trace.verified.program);
  const auto ooms =
      oom_moments(trace.snapshot, 0, trace.verified.recording, trace.lifetimes, ranges, 8);
  ASSERT_EQ(ooms.size(), 1u);
  const OomMoment& oom = ooms.front();
  EXPECT_EQ(trace.verified.recording.events[oom.event].action, Action::oom);
  EXPECT_EQ(oom.allocated + oom.pending + oom.free.bytes, oom.reserved);
  EXPECT_LE(oom.usable.largest, oom.free.largest);
  EXPECT_LE(oom.usable.bytes, oom.free.bytes);
  // The model, which keeps its own lists of free blocks, finds the same numbers.
  memory::ReplayOptions options;
  options.allocator.settings = trace.verified.recording.settings;
  options.allocator.version = trace.verified.recording.version;
  const auto model = memory::verify(*trace.verified.program, options).result.oom;
  ASSERT_TRUE(model);
  EXPECT_EQ(oom.event, model->event);
  EXPECT_EQ(oom.allocated, model->allocated);
  EXPECT_EQ(oom.reserved, model->reserved);
  EXPECT_EQ(oom.usable.largest, model->largest_free_in_pool);
  EXPECT_EQ(oom.free.largest, model->largest_free);
  EXPECT_EQ(oom.segment_bytes, model->tried);
}

TEST(StackGroups, AreTheLargestAtThePeakAndCoverEveryRow) {
  const TestTrace& trace = real_trace("trace-gpt2-stacks");
  const uint32_t peak = 4314;
  const StackGroups groups = stack_groups(trace.lifetimes, peak, 6);
  ASSERT_EQ(groups.stacks.size(), 6u);
  ASSERT_EQ(groups.of_row.size(), trace.lifetimes.rows.size());
  std::map<uint32_t, uint64_t> at_peak;
  for (size_t i = 0; i < groups.of_row.size(); ++i) {
    const Lifetime& row = trace.lifetimes.rows[i];
    if (is_allocated(row, peak)) at_peak[row.stack] += row.block_bytes;
    const uint8_t group = groups.of_row[i];
    ASSERT_LE(group, groups.stacks.size());
    if (group > 0) {
      EXPECT_EQ(groups.stacks[group - 1], row.stack);
    }
  }
  uint64_t largest = 0;
  for (const auto& [stack, bytes] : at_peak) largest = std::max(largest, bytes);
  EXPECT_EQ(at_peak[groups.stacks.front()], largest);
  for (size_t i = 1; i < groups.stacks.size(); ++i)
    EXPECT_GE(at_peak[groups.stacks[i - 1]], at_peak[groups.stacks[i]]);
}

}  // namespace segment_ranges_test
}  // namespace cufit::analysis
