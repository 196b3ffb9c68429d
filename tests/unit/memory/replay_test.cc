// SPDX-License-Identifier: Apache-2.0
// A random program is run through the model with its log kept; the log as a recording must then
// replay exactly, whole or cut at the front as by a ring that overflowed.
#include "memory/replay.h"

#include <gtest/gtest.h>

#include <random>

namespace cufit::memory {
namespace {

class Recorder {
 public:
  Recorder(const char* settings, uint64_t limit, uint64_t seed) : random_(seed) {
    options_.allocator.settings =
        parse_allocator_settings(settings, options_.allocator.version).value();
    if (limit != 0) options_.allocator.allowed_memory_maximum = limit;
    options_.allocator.total_memory = 2048 * k_mib;
    recording_.settings = options_.allocator.settings;
  }

  Recording record(int steps) {
    SyntheticMemory memory;
    CachingAllocator allocator(options_.allocator, memory, &log_);
    std::vector<BlockHandle> live, waiting;
    for (int i = 0; i < steps; ++i) {
      const uint64_t dice = random_() % 100;
      if (dice < 50) {
        allocate(allocator, live);
      } else if (dice < 97 && !live.empty()) {
        std::swap(live[random_() % live.size()], live.back());
        free(allocator, live, waiting, dice < 55);
      } else if (dice == 97) {
        allocator.empty_cache();
        take_log();
      } else if (!waiting.empty()) {
        allocator.free_completed(waiting.front());
        note(Action::free_completed, allocator.block(waiting.front()));
        waiting.erase(waiting.begin());
      }
    }
    stats = allocator.stats();
    recording_.final_segments = allocator.segments();
    return recording_;
  }

  const ReplayOptions& options() const { return options_; }
  DeviceStats stats;

 private:
  void note(Action action, const PoolBlock& block) {
    recording_.events.push_back({block.ptr, block.requested_size, 0, 0, action});
  }

  void take_log() {
    for (const SegmentEvent& event : log_) {
      const auto action = static_cast<Action>(static_cast<int>(event.action) +
                                              static_cast<int>(Action::segment_alloc));
      recording_.events.push_back({event.address, event.size, event.stream, 0, action});
    }
    log_.clear();
  }

  void allocate(CachingAllocator& allocator, std::vector<BlockHandle>& live) {
    const uint64_t size = (uint64_t{1} << (random_() % 27)) + random_() % 5000;
    const BlockHandle handle = allocator.malloc(size);
    take_log();
    if (handle) {
      live.push_back(handle);
      note(Action::alloc, allocator.block(handle));
    } else {
      recording_.events.push_back({0, allocator.last_oom().rounded, 0, 0, Action::oom});
    }
  }

  // Frees that wait are kept from the release steps of a limited run, whose order of completion no
  // recording shows.
  void free(CachingAllocator& allocator, std::vector<BlockHandle>& live,
            std::vector<BlockHandle>& waiting, bool wait) {
    const BlockHandle handle = live.back();
    live.pop_back();
    note(Action::free_requested, allocator.block(handle));
    if (wait && !options_.allocator.allowed_memory_maximum && waiting_allowed_) {
      allocator.free_requested(handle);
      waiting.push_back(handle);
      return;
    }
    note(Action::free_completed, allocator.block(handle));
    allocator.free(handle);
  }

  std::mt19937_64 random_;
  ReplayOptions options_;
  Recording recording_;
  std::vector<SegmentEvent> log_;
  bool waiting_allowed_ = false;
};

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

}  // namespace
}  // namespace cufit::memory
