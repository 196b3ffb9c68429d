// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/snapshot_recording.h"

#include <gtest/gtest.h>

namespace cufit::memory {
namespace snapshot_recording_test {

Segment private_segment(uint64_t address, uint64_t size, uint64_t pool) {
  Segment segment;
  segment.address = address;
  segment.total_size = size;
  segment.pool = PoolId{pool, 0};
  segment.blocks.push_back({address, size, k_absent, k_no_stack, BlockState::inactive});
  return segment;
}

void add(Snapshot& snapshot, Action action, uint64_t address, uint64_t size, uint32_t context = 0) {
  TraceEvent event;
  event.address = address;
  event.size = size;
  event.context = context;
  event.action = action;
  snapshot.events.push_back(event);
  snapshot.traces.back().count += 1;
}

Snapshot small_snapshot() {
  Snapshot snapshot;
  snapshot.traces.emplace_back();
  snapshot.contexts.emplace_back();
  return snapshot;
}

TEST(RecordingOf, PoolsFollowFromTheSegmentsBefore214) {
  Snapshot snapshot = small_snapshot();
  snapshot.segments.push_back(private_segment(1000, 100, 7));
  snapshot.segments.push_back(private_segment(5000, 100, 9));
  add(snapshot, Action::alloc, 1010, 5);  // before the segment that is there now
  add(snapshot, Action::segment_alloc, 1000, 100);
  add(snapshot, Action::alloc, 1010, 5);
  add(snapshot, Action::alloc, 5099, 1);
  add(snapshot, Action::alloc, 5100, 1);
  add(snapshot, Action::oom, 1010, 5);
  const Recording recording = recording_of(snapshot, 0, version_profile(2, 11)).value();
  std::vector<uint32_t> pools;
  for (const RecordedEvent& event : recording.events) pools.push_back(event.pool);
  EXPECT_EQ(pools, (std::vector<uint32_t>{0, 1, 1, 2, 0, 0}));
  EXPECT_EQ(recording.final_segments[1].pool, 2u);
}

TEST(RecordingOf, EventsNameTheirPoolFrom214On) {
  Snapshot snapshot = small_snapshot();
  snapshot.contexts[0].pool = PoolId{};
  snapshot.contexts.emplace_back();
  snapshot.contexts[1].pool = PoolId{0, 3};
  snapshot.contexts[1].stream = 99;
  snapshot.segments.push_back(private_segment(1000, 100, 7));
  add(snapshot, Action::alloc, 1010, 5, 0);
  add(snapshot, Action::alloc, 1020, 5, 1);
  const Recording recording = recording_of(snapshot, 0, version_profile(2, 14)).value();
  EXPECT_EQ(recording.events[0].pool, 0u);
  EXPECT_EQ(recording.events[1].pool, 2u);
  EXPECT_EQ(recording.events[1].stream, 99u);
}

TEST(RecordingOf, OnlyItsDevice) {
  Snapshot snapshot = small_snapshot();
  snapshot.traces.emplace_back();
  snapshot.traces[1].first = 0;
  snapshot.segments.push_back(private_segment(1000, 100, 7));
  snapshot.segments.back().device = 1;
  EXPECT_TRUE(recording_of(snapshot, 0, {}).value().final_segments.empty());
  EXPECT_EQ(recording_of(snapshot, 1, {}).value().final_segments.size(), 1u);
  EXPECT_EQ(recording_of(snapshot, 2, {}).error().what, "the snapshot has no trace of device 2");
}

TEST(RecordedSettings, FromTheTextOrTheFields) {
  Snapshot snapshot = small_snapshot();
  EXPECT_FALSE(recorded_settings(snapshot, {}).value().expandable_segments);
  snapshot.settings.emplace();
  snapshot.settings->max_split_size = 64 * k_mib;
  snapshot.settings->roundup_power2_divisions = {{"1", 4}, {"32768", 8}, {"3", 2}, {"65536", 2}};
  const Settings fields = recorded_settings(snapshot, {}).value();
  EXPECT_EQ(fields.max_split_size, 64 * k_mib);
  EXPECT_EQ(fields.roundup_power2_divisions[0], 4u);
  EXPECT_EQ(fields.roundup_power2_divisions[15], 8u);
  snapshot.settings->conf = "expandable_segments:True";
  EXPECT_TRUE(recorded_settings(snapshot, {}).value().expandable_segments);
  snapshot.settings->conf = "expandable:True";
  const Error error = recorded_settings(snapshot, {}).error();
  EXPECT_EQ(error.text(),
            "the snapshot's allocator settings: unknown allocator setting `expandable` at byte 0");
}

}  // namespace snapshot_recording_test
}  // namespace cufit::memory
