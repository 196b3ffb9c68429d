// SPDX-License-Identifier: Apache-2.0
// A random program is run through the model with its log kept; the log as a recording must then
// replay exactly, whole or cut at the front as by a ring that overflowed.
#include "memory/replay/replay.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/memory/replay/recorder.h"

namespace cufit::memory {
namespace replay_test {

const char* const k_settings[] = {"", "expandable_segments:True", "max_split_size_mb:32",
                                  "roundup_power2_divisions:4"};

void expect_exact(const Verification& check, const std::string& what) {
  EXPECT_TRUE(check.exact()) << what << ": event " << *check.first_difference;
  EXPECT_EQ(check.segment_events, check.segment_events_matched) << what;
  EXPECT_EQ(check.allocations, check.addresses_matched) << what;
}

TEST(Verify, OwnRecordingsAreExact) {
  for (const char* settings : k_settings)
    for (const uint64_t limit : {uint64_t{0}, 400 * k_mib}) {
      Recorder recorder(settings, limit, 3);
      const Recording recording = recorder.record(4000);
      const Program program = compile_program(recording);
      EXPECT_EQ(program.contradictions, 0u);
      EXPECT_TRUE(program.initial.empty());
      const Verification check = verify(program, recorder.options());
      expect_exact(check, settings);
      EXPECT_EQ(check.result.stats.reserved_bytes.peak, recorder.stats.reserved_bytes.peak);
      EXPECT_EQ(check.result.stats.allocated_bytes.peak, recorder.stats.allocated_bytes.peak);
      EXPECT_EQ(check.result.stats.num_ooms, recorder.stats.num_ooms);
    }
}

TEST(Verify, WithoutItsBeginning) {
  for (const char* settings : {"", "roundup_power2_divisions:4"})
    for (const uint64_t skipped : {500, 2000, 5000}) {
      Recorder recorder(settings, 0, 9);
      Recording recording = recorder.record(4000);
      recording.events.keep_last(recording.events.size() - skipped);
      const Program program = compile_program(recording);
      EXPECT_FALSE(program.initial.empty());
      expect_exact(verify(program, recorder.options()), settings + std::to_string(skipped));
    }
}

TEST(Verify, OtherSettingsAreNotExact) {
  Recorder recorder("", 0, 3);
  const Program program = compile_program(recorder.record(2000));
  ReplayOptions options = recorder.options();
  options.allocator.settings.roundup_power2_divisions.fill(2);
  const Verification check = verify(program, options);
  EXPECT_FALSE(check.exact());
  EXPECT_LT(check.addresses_matched, check.allocations);
}

TEST(Replay, SameSettingsGiveTheSamePeaks) {
  for (const char* settings : k_settings) {
    Recorder recorder(settings, 0, 21);
    const Program program = compile_program(recorder.record(3000));
    const ReplayResult result = replay(program, recorder.options());
    EXPECT_FALSE(result.oom);
    EXPECT_EQ(result.stats.reserved_bytes.peak, recorder.stats.reserved_bytes.peak) << settings;
  }
}

TEST(Replay, ALimitEndsTheRunAndNamesTheEvent) {
  Recording recording;
  recording.events = {{1000, 30 * k_mib, 0, 0, Action::alloc},
                      {0, 5, 0, 0, Action::other},
                      {2000, 30 * k_mib, 0, 0, Action::alloc},
                      {2000, 30 * k_mib, 0, 0, Action::free_requested},
                      {2000, 30 * k_mib, 0, 0, Action::free_completed}};
  const Program program = compile_program(recording);
  ReplayOptions options;
  options.allocator.allowed_memory_maximum = 50 * k_mib;
  const ReplayResult died = replay(program, options);
  ASSERT_TRUE(died.oom);
  EXPECT_EQ(died.oom->event, 2u);
  EXPECT_EQ(died.oom->tried, 30 * k_mib);
  options.allocator.allowed_memory_maximum = 60 * k_mib;
  EXPECT_FALSE(replay(program, options).oom);
}

TEST(Replay, SurvivesWhatTheRecordedRunDidNot) {
  Recording recording;
  recording.events = {{1000, 30 * k_mib, 0, 0, Action::alloc}, {0, 30 * k_mib, 0, 0, Action::oom}};
  const Program program = compile_program(recording);
  const ReplayResult result = replay(program, {});
  EXPECT_FALSE(result.oom);
  EXPECT_TRUE(result.survived_recorded_oom);
}

// Two blocks of a private pool and of another stream, one freed, then one of the default pool.
TEST(Replay, WithoutPoolsTheDefaultPoolServesAll) {
  Program program;
  program.streams = {0, 7};
  program.pools = 1;
  program.slots = 3;
  program.sizes.assign(3, 12 * k_mib);
  const auto add = [&](uint32_t slot, uint16_t stream, uint16_t pool, OpKind kind) {
    Op op;
    op.slot = slot, op.stream = stream, op.pool = pool, op.kind = kind;
    op.event = static_cast<uint32_t>(program.ops.size());
    program.ops.push_back(op);
  };
  add(0, 1, 1, OpKind::malloc);
  add(1, 1, 1, OpKind::malloc);
  add(0, 1, 1, OpKind::free);
  add(2, 0, 0, OpKind::malloc);
  ReplayOptions options;
  EXPECT_EQ(replay(program, options).stats.reserved_bytes.peak, 36 * k_mib);
  options.without_pools = true;
  const ReplayResult without = replay(program, options);
  EXPECT_EQ(without.stats.reserved_bytes.peak, 24 * k_mib);
  EXPECT_EQ(without.stats.allocated_bytes.peak, 24 * k_mib);
  const auto& reasons = without.replay_limitations;
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), "graph_replays"), 1);
}

}  // namespace replay_test
}  // namespace cufit::memory
