// SPDX-License-Identifier: Apache-2.0
// Each reason stands where its thing is, and not where it is not.
#include "memory/replay/replay_limitations.h"

#include <gtest/gtest.h>

#include "unit/memory/replay/recorder.h"

namespace cufit::memory {
namespace replay_limitations_test {

using Reasons = std::vector<std::string>;

// A recording by hand: allocations at addresses of the caller's choice, in segments of their own.
class Script {
 public:
  Script& segment(uint64_t address, uint64_t size) {
    return add(Action::segment_alloc, address, size);
  }
  Script& alloc(uint64_t address, uint64_t size) { return add(Action::alloc, address, size); }
  Script& free(uint64_t address, uint64_t size) {
    return requested(address, size).completed(address, size);
  }
  Script& requested(uint64_t address, uint64_t size) {
    return add(Action::free_requested, address, size);
  }
  Script& completed(uint64_t address, uint64_t size) {
    return add(Action::free_completed, address, size);
  }
  Script& oom(uint64_t size) { return add(Action::oom, 0, size); }

  ReplayResult run(const char* settings, uint64_t limit = 0) const {
    ReplayOptions options;
    options.allocator.settings = parse_allocator_settings(settings, recording.version).value();
    if (limit != 0) options.allocator.allowed_memory_maximum = limit;
    return replay(compile_program(recording), options);
  }

  Recording recording;

 private:
  Script& add(Action action, uint64_t address, uint64_t size) {
    recording.events.push_back({address, size, 0, 0, action});
    return *this;
  }
};

constexpr uint64_t k_a = uint64_t{1} << 46;
constexpr uint64_t k_b = k_a - 64 * k_mib;

Script with_workspace(uint64_t size) {
  Script script;
  script.segment(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib);
  script.segment(k_b, 32 * k_mib).alloc(k_b, size).free(k_b, size);
  script.alloc(k_b, 12 * k_mib).free(k_b, 12 * k_mib).free(k_a, 20 * k_mib);
  return script;
}

TEST(ReplayLimitations, AWorkspaceThatDoesNotFitIsNotTheEnd) {
  const Script script = with_workspace(31 * k_mib + 147);
  EXPECT_EQ(script.run("").replay_limitations, Reasons());
  const ReplayResult result = script.run("", 40 * k_mib);
  EXPECT_FALSE(result.oom);
  ASSERT_TRUE(result.workspace_refused);
  EXPECT_EQ(result.workspace_refused->requested, 31 * k_mib + 147);
  EXPECT_EQ(result.replay_limitations, Reasons{"cudnn_workspace"});
  EXPECT_EQ(result.stats.reserved_bytes.peak, 32 * k_mib);
}

TEST(ReplayLimitations, ATensorThatDoesNotFitIs) {
  const ReplayResult result = with_workspace(31 * k_mib).run("", 40 * k_mib);
  EXPECT_TRUE(result.oom);
  EXPECT_FALSE(result.workspace_refused);
  EXPECT_EQ(result.replay_limitations, Reasons());
}

TEST(ReplayLimitations, AFailureThatALibraryCaughtIsNoEnd) {
  Script script;
  script.segment(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib).oom(32 * k_mib).oom(30 * k_mib);
  script.segment(k_b, 20 * k_mib).alloc(k_b, 20 * k_mib).free(k_b, 20 * k_mib);
  const ReplayResult as_recorded = script.run("", 44 * k_mib);
  EXPECT_FALSE(as_recorded.oom);
  EXPECT_EQ(as_recorded.replay_limitations, Reasons());
  EXPECT_EQ(script.run("").replay_limitations, Reasons{"cudnn_workspace"});
  // Several attempts in a row and then none at all: it did without.
  Script without;
  without.segment(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib).oom(32 * k_mib).oom(30 * k_mib);
  without.free(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib).free(k_a, 20 * k_mib);
  EXPECT_FALSE(without.run("", 44 * k_mib).oom);
  const ReplayResult served = without.run("", 60 * k_mib);
  EXPECT_EQ(served.replay_limitations, Reasons{"cudnn_workspace"});
  EXPECT_EQ(served.stats.reserved_bytes.peak, 52 * k_mib);  // the first attempt sufficed
  // After this one the program only frees: it dies.
  Script dies;
  dies.segment(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib).oom(32 * k_mib).free(k_a, 20 * k_mib);
  EXPECT_TRUE(dies.run("", 44 * k_mib).oom);
  EXPECT_TRUE(dies.run("").survived_recorded_oom);
}

// The second block could take the place of the first if its event had passed.
TEST(ReplayLimitations, TimesOfEventsMatterOnlyIfAnotherTimeGivesAnotherPeak) {
  Script script;
  script.segment(k_a, 22 * k_mib).alloc(k_a, 21 * k_mib + 512).requested(k_a, 21 * k_mib + 512);
  script.segment(k_b, 22 * k_mib).alloc(k_b, 21 * k_mib + 512);
  script.completed(k_a, 21 * k_mib + 512).free(k_b, 21 * k_mib + 512);
  EXPECT_EQ(script.run("").replay_limitations, Reasons());  // as recorded
  EXPECT_EQ(script.run("roundup_power2_divisions:4").replay_limitations, Reasons{"stream_timing"});
  Script early;
  early.segment(k_a, 22 * k_mib).alloc(k_a, 21 * k_mib + 512).requested(k_a, 21 * k_mib + 512);
  early.segment(k_b, 2 * k_mib).alloc(k_b, 512).completed(k_a, 21 * k_mib + 512).free(k_b, 512);
  EXPECT_EQ(early.run("roundup_power2_divisions:4").replay_limitations, Reasons());
}

TEST(ReplayLimitations, ARecordingThatBeganLateSaysSoUnderOtherSettings) {
  Script script;
  script.free(k_a, 20 * k_mib);  // an allocation that was made before
  script.segment(k_b, 22 * k_mib).alloc(k_b, 21 * k_mib + 512).free(k_b, 21 * k_mib + 512);
  SegmentView first, second;
  first.address = k_a, first.size = 20 * k_mib;
  first.blocks = {{k_a, 20 * k_mib, 0, BlockUse::inactive, {}}};
  second.address = k_b, second.size = 22 * k_mib;
  second.blocks = {{k_b, 22 * k_mib, 0, BlockUse::inactive, {}}};
  script.recording.final_segments = {second, first};
  EXPECT_EQ(script.run("").replay_limitations, Reasons());
  EXPECT_EQ(script.run("roundup_power2_divisions:4").replay_limitations, Reasons{"ring_overflow"});
}

// Segments side by side, as no driver known here puts them: where it matters, it is said.
TEST(ReplayLimitations, ALayoutOfAnotherKindLeavesAddressesOpen) {
  size_t differ = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Recorder recorder("", 0, seed);
    recorder.order = SyntheticMemory::Order::descending;
    const Program program = compile_program(recorder.record(3000, false));
    if (program.placement.follows_rule()) continue;  // too few segments
    for (const char* settings : {"roundup_power2_divisions:2", "max_split_size_mb:32"}) {
      ReplayOptions options = recorder.options();
      options.allocator.settings = parse_allocator_settings(settings, {}).value();
      options.allocator.allowed_memory_maximum.reset();
      const ReplayResult result = replay(program, options);
      options.with_reasons = false;
      options.order = SyntheticMemory::Order::descending;
      const ReplayResult other = replay(program, options);
      if (other.stats.reserved_bytes.peak == result.stats.reserved_bytes.peak) continue;
      ++differ;
      EXPECT_EQ(result.replay_limitations, Reasons{"segment_addresses"}) << seed << settings;
    }
  }
  EXPECT_GE(differ, 5u);
}

TEST(ReplayLimitations, EventsThatAreMissing) {
  Script script;
  script.segment(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib).free(k_b, 512);
  EXPECT_EQ(script.run("").replay_limitations, Reasons{"skipped_actions"});
}

// Ever smaller blocks that one segment served in turn; under max_split_size_mb each of at least
// 64 MiB gets a segment of its own.
Script shrinking(int blocks) {
  Script script;
  script.segment(k_a, 320 * k_mib);
  for (int i = 0; i < blocks; ++i) {
    const uint64_t size = (320 - static_cast<uint64_t>(i) * 40) * k_mib;
    script.alloc(k_a, size).free(k_a, size);
  }
  return script;
}

TEST(ReplayLimitations, FarMoreThanRecordedWithoutALimit) {
  EXPECT_EQ(shrinking(5).run("").replay_limitations, Reasons());
  const ReplayResult thrice = shrinking(4).run("max_split_size_mb:64");
  EXPECT_EQ(thrice.stats.reserved_bytes.peak, (320 + 280 + 240 + 200) * k_mib);  // 3.25 times
  EXPECT_EQ(thrice.replay_limitations, Reasons{"capacity_unknown"});
  const ReplayResult limited = shrinking(4).run("max_split_size_mb:64", 2000 * k_mib);
  EXPECT_EQ(limited.replay_limitations, Reasons());
  EXPECT_EQ(shrinking(3).run("max_split_size_mb:64").replay_limitations, Reasons());  // 2.6 times
}

TEST(ReplayLimitations, SettingsThatAreAcceptedButNotFollowed) {
  Script script;
  script.segment(k_a, 20 * k_mib).alloc(k_a, 20 * k_mib).free(k_a, 20 * k_mib);
  EXPECT_EQ(script.run("backend:cudaMallocAsync").replay_limitations, Reasons{"cuda_malloc_async"});
  const char* reuse = "graph_capture_record_stream_reuse:True";
  EXPECT_EQ(script.run(reuse).replay_limitations, Reasons());  // no capture in the recording
  RecordedEvents in_a_pool;
  for (RecordedEvent event : script.recording.events) {
    event.pool = 1;
    in_a_pool.push_back(event);
  }
  script.recording.events = in_a_pool;
  EXPECT_EQ(script.run(reuse).replay_limitations, Reasons{"graph_capture_reuse"});
}

}  // namespace replay_limitations_test
}  // namespace cufit::memory
