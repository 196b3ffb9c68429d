// SPDX-License-Identifier: Apache-2.0
// A shortcut is right where the replay that it saves says the same, in everything.
#include "memory/replay/replay_elision.h"
#include "support/places.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace cufit::memory {
namespace replay_elision_test {

namespace fs = std::filesystem;

VerifiedRecording verify_recording_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const Snapshot snapshot =
      *read_snapshot(std::make_shared<MemorySource>(path.filename().string(), bytes.str()));
  return *verify_recording(snapshot, busiest_device(snapshot), {});  // outlives the snapshot
}

std::vector<fs::path> traces() {
  std::vector<fs::path> out;
  for (const auto& entry :
       fs::recursive_directory_iterator(cufit::test::source_dir() + "/tests/traces"))
    if (entry.path().extension() == ".gz" && entry.path().parent_path().filename() != "pairs")
      out.push_back(entry.path());
  return out;
}

void expect_same(const ReplayResult& a, const ReplayResult& b) {
  EXPECT_EQ(a.stats.allocated_bytes.peak, b.stats.allocated_bytes.peak);
  EXPECT_EQ(a.stats.reserved_bytes.peak, b.stats.reserved_bytes.peak);
  EXPECT_EQ(a.stats.reserved_bytes.current, b.stats.reserved_bytes.current);
  EXPECT_EQ(a.stats.segments.peak, b.stats.segments.peak);
  EXPECT_EQ(a.stats.cuda_mallocs, b.stats.cuda_mallocs);
  EXPECT_EQ(a.stats.cuda_frees, b.stats.cuda_frees);
  EXPECT_EQ(a.stats.maps, b.stats.maps);
  EXPECT_EQ(a.stats.unmaps, b.stats.unmaps);
  EXPECT_EQ(a.stats.num_alloc_retries, b.stats.num_alloc_retries);
  EXPECT_EQ(a.oom.has_value(), b.oom.has_value());
  if (a.oom && b.oom) {
    EXPECT_EQ(a.oom->event, b.oom->event);
  }
  EXPECT_EQ(a.survived_recorded_oom, b.survived_recorded_oom);
  EXPECT_EQ(a.replay_limitations, b.replay_limitations);
}

TEST(ReplayElision, TheVerifiedRunIsTheReplay) {
  size_t plain = 0, all = 0;
  for (const fs::path& path : traces()) {
    SCOPED_TRACE(path.filename());
    const VerifiedRecording verified = verify_recording_file(path);
    ReplayOptions options;
    options.allocator.settings = verified.recording.settings;
    options.allocator.version = verified.recording.version;
    options.allocator.settings.garbage_collection_threshold = 0;
    expect_same(result_of(verified, options), replay(*verified.program, options));
    plain += verified.verification.is_plain ? 1 : 0;
    ++all;
  }
  EXPECT_GE(all, 40u);
  EXPECT_GE(plain, 20u);
  EXPECT_LT(plain, all);  // in some the driver had nothing left
}

// Runs with other places of segments, both made at once where the first is asked for.
TEST(ReplayElision, RunsMadeTogetherAreThoseAskedForLater) {
  size_t open = 0;
  for (const fs::path& path : traces()) {
    SCOPED_TRACE(path.filename());
    const VerifiedRecording verified = verify_recording_file(path);
    if (verified.program->ops.size() < 2000) continue;
    for (const char* text : {"", "roundup_power2_divisions:4", "max_split_size_mb:64"}) {
      ReplayOptions options;
      options.allocator.version = verified.recording.version;
      options.allocator.settings = *parse_allocator_settings(text, verified.recording.version);
      options.capacity = verified.program->recorded_peak - (64u << 20);
      options.processors = 1;
      const ReplayResult one_by_one = replay(*verified.program, options);
      options.processors = 64;
      const ReplayResult result = replay(*verified.program, options);
      expect_same(result, one_by_one);
      const auto& reasons = result.replay_limitations;
      open += static_cast<size_t>(std::count(reasons.begin(), reasons.end(), "segment_addresses"));
    }
  }
  EXPECT_GE(open, 1u);
}

TEST(ReplayElision, AnIdleSettingChangesNothing) {
  size_t idle = 0, all = 0;
  for (const fs::path& path : traces()) {
    const VerifiedRecording verified = verify_recording_file(path);
    for (const char* text : {"max_split_size_mb:21", "max_split_size_mb:64",
                             "max_split_size_mb:128,roundup_power2_divisions:4",
                             "max_split_size_mb:64,expandable_segments:True"}) {
      SCOPED_TRACE(path.filename().string() + " " + text);
      ReplayOptions options, shorter;
      options.allocator.settings = *parse_allocator_settings(text, verified.recording.version);
      options.allocator.version = verified.recording.version;
      shorter = options;
      drop_idle_settings(*verified.program, shorter.allocator.settings);
      ++all;
      if (shorter.allocator.settings == options.allocator.settings) continue;
      ++idle;
      expect_same(replay(*verified.program, shorter), replay(*verified.program, options));
      const uint64_t peak = verified.verification.result.stats.reserved_bytes.peak;
      options.allocator.allowed_memory_maximum = shorter.allocator.allowed_memory_maximum =
          peak - peak / 8;
      expect_same(replay(*verified.program, shorter), replay(*verified.program, options));
    }
  }
  EXPECT_GE(idle, 10u);
  EXPECT_GE(all, idle + 50);
}

}  // namespace replay_elision_test
}  // namespace cufit::memory
