// SPDX-License-Identifier: Apache-2.0
// Real runs on an H200 (tests/traces): under their own settings every segment event and address
// must come out as recorded, and from the trace of the default run the peaks that other settings
// and limits had when they were really run.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "memory/replay/replay.h"
#include "memory/snapshot/snapshot_recording.h"
#include "support/places.h"

namespace cufit::memory {
namespace recorded_runs_test {

// 139.80 GiB as torch reported it; sizes the limits.
constexpr uint64_t k_h200 = 150109880320;

const Recording& recording(const std::string& name) {
  static std::map<std::string, Recording> kept;
  const auto found = kept.find(name);
  if (found != kept.end()) return found->second;
  std::ifstream file(cufit::test::source_dir() + "/tests/traces/" + name + ".pkl.gz",
                     std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const Snapshot snapshot =
      read_snapshot(std::make_shared<MemorySource>(name, bytes.str())).value();
  return kept[name] = recording_of(snapshot, 0, version_profile(2, 11)).value();
}

ReplayOptions options_for(const Recording& recording) {
  ReplayOptions options;
  options.allocator.settings = recording.settings;
  options.allocator.version = recording.version;
  options.allocator.total_memory = k_h200;
  return options;
}

TEST(RecordedRuns, EverySegmentEventAndAddress) {
  const struct {
    const char* name;
    size_t segment_events, allocations;
  } runs[] = {{"trace-resnet", 105, 6028},
              {"trace-varlen", 236, 32435},
              {"trace-gpt2-stacks", 131, 3615},
              {"oom-varlen", 244, 1860}};
  for (const auto& run : runs) {
    const Recording& recorded = recording(run.name);
    const Program program = compile_program(recorded);
    EXPECT_EQ(program.contradictions, 0u) << run.name;
    const Verification check = verify(program, options_for(recorded));
    EXPECT_TRUE(check.exact()) << run.name;
    EXPECT_EQ(check.segment_events, run.segment_events) << run.name;
    EXPECT_EQ(check.segment_events_matched, run.segment_events) << run.name;
    EXPECT_EQ(check.allocations, run.allocations) << run.name;
    EXPECT_EQ(check.addresses_matched, run.allocations) << run.name;
  }
}

// A ring of 1/2, 1/4 ... of the events: the beginning is rebuilt from the end.
TEST(RecordedRuns, WithoutTheirBeginning) {
  for (const char* name : {"trace-resnet", "trace-varlen", "trace-gpt2-stacks", "oom-varlen"})
    for (const size_t part : {2, 4, 8, 64}) {
      Recording cut = recording(name);
      cut.events.keep_last(cut.events.size() / part);
      const Verification check = verify(compile_program(cut), options_for(cut));
      EXPECT_TRUE(check.exact()) << name << " 1/" << part << ", event " << *check.first_difference;
      EXPECT_EQ(check.segment_events, check.segment_events_matched) << name;
    }
}

struct Measured {
  const char* trace;
  const char* settings;
  double limit_gib;  // 0: none
  uint64_t peak_reserved;
  bool out_of_memory;
};

// whatif-h200.jsonl and limits-h200.jsonl without the three rows that met a physically full GPU.
const Measured k_measured[] = {
    {"trace-varlen", "", 0, 19872612352, false},
    {"trace-varlen", "expandable_segments:True", 0, 19138609152, false},
    {"trace-varlen", "roundup_power2_divisions:4", 0, 20885536768, false},
    {"trace-varlen", "garbage_collection_threshold:0.7", 0, 19872612352, false},
    {"trace-resnet", "", 0, 5360320512, false},
    {"trace-resnet", "expandable_segments:True", 0, 4523556864, false},
    {"trace-resnet", "max_split_size_mb:128", 0, 6054477824, false},
    {"trace-resnet", "max_split_size_mb:512", 0, 5360320512, false},
    {"trace-resnet", "roundup_power2_divisions:4", 0, 5710544896, false},
    {"trace-resnet", "garbage_collection_threshold:0.7", 0, 5360320512, false},
    {"trace-resnet", "max_split_size_mb:64,garbage_collection_threshold:0.6", 0, 6826229760, false},
    {"trace-varlen", "", 17.963, 17842569216, true},
    {"trace-varlen", "", 18.675, 19872612352, false},
    {"trace-varlen", "", 19.92, 19872612352, false},
    {"trace-varlen", "expandable_segments:True", 17.963, 19138609152, false},
    {"trace-varlen", "expandable_segments:True", 18.675, 19138609152, false},
    {"trace-varlen", "expandable_segments:True", 19.92, 19138609152, false},
    {"trace-varlen", "garbage_collection_threshold:0.7", 17.963, 17622368256, true},
    {"trace-varlen", "garbage_collection_threshold:0.7", 18.675, 19652411392, false},
    {"trace-varlen", "garbage_collection_threshold:0.7", 19.92, 19652411392, false},
};

TEST(RecordedRuns, WhatOtherSettingsReallyDid) {
  std::map<std::string, Program> programs;
  for (const Measured& row : k_measured) {
    SCOPED_TRACE(std::string(row.trace) + " " + row.settings + " " + std::to_string(row.limit_gib));
    const Recording& recorded = recording(row.trace);
    if (programs.find(row.trace) == programs.end()) programs[row.trace] = compile_program(recorded);
    ReplayOptions options = options_for(recorded);
    options.allocator.settings = parse_allocator_settings(row.settings, recorded.version).value();
    if (row.limit_gib > 0) {
      const double fraction = row.limit_gib * 1073741824 / static_cast<double>(k_h200);
      options.allocator.allowed_memory_maximum =
          static_cast<uint64_t>(fraction * static_cast<double>(k_h200));
    }
    const ReplayResult result = replay(programs[row.trace], options);
    EXPECT_EQ(result.stats.reserved_bytes.peak, row.peak_reserved);
    EXPECT_EQ(result.oom.has_value(), row.out_of_memory);
    // The measured runs died in their second step; the same request fails here.
    if (result.oom) {
      EXPECT_EQ(result.oom->tried, 2030043136u);
    }
  }
}

TEST(RecordedRuns, ExpandableSegmentsSurviveTheRecordedDeath) {
  const Recording& recorded = recording("oom-varlen");
  ReplayOptions options = options_for(recorded);
  options.allocator.allowed_memory_maximum = static_cast<uint64_t>(17.963 * 1073741824);
  const Program program = compile_program(recorded);
  EXPECT_TRUE(replay(program, options).oom);
  options.allocator.settings.expandable_segments = true;
  const ReplayResult result = replay(program, options);
  EXPECT_FALSE(result.oom);
  EXPECT_TRUE(result.survived_recorded_oom);
}

}  // namespace recorded_runs_test
}  // namespace cufit::memory
