// SPDX-License-Identifier: Apache-2.0
// What-if replays against runs that were really made: every row of runs.jsonl and unseen.jsonl in
// tests/traces, of whatif-h200.jsonl and of limits-h200.jsonl. A row may be wrong only where the
// replay says why.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "memory/replay/replay.h"
#include "memory/snapshot/snapshot_recording.h"
#include "support/places.h"

namespace cufit::memory {
namespace measured_runs_test {

using Json = nlohmann::json;

// 139.80 GiB as torch reported it.
constexpr uint64_t k_h200 = 150109880320;

struct Recorded {
  Recording recording;
  Program program;
};

const Recorded& recorded(const std::string& name) {
  static std::map<std::string, Recorded> kept;
  const auto found = kept.find(name);
  if (found != kept.end()) return found->second;
  std::ifstream file(cufit::test::source_dir() + "/tests/traces/" + name + ".pkl.gz",
                     std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const Snapshot snapshot =
      read_snapshot(std::make_shared<MemorySource>(name, bytes.str())).value();
  Recorded& entry = kept[name];
  entry.recording = recording_of(snapshot, 0, version_profile(2, 11)).value();
  entry.program = compile_program(entry.recording);
  return entry;
}

std::vector<Json> rows(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> all;
  for (std::string line; std::getline(file, line);) all.push_back(Json::parse(line));
  return all;
}

// set_per_process_memory_fraction(bytes / total), as PyTorch truncates it.
uint64_t allowed(double bytes) {
  return static_cast<uint64_t>(bytes / static_cast<double>(k_h200) * static_cast<double>(k_h200));
}

ReplayOptions options_for(const Recorded& run, const std::string& settings) {
  ReplayOptions options;
  options.allocator.settings = parse_allocator_settings(settings, run.recording.version).value();
  options.allocator.version = run.recording.version;
  options.allocator.total_memory = k_h200;
  return options;
}

struct Tally {
  size_t rows = 0, outcomes = 0, exact = 0, with_reason = 0;
};

// The contract: without a reason the outcome is right and the peak within 0.5 %.
void judge(const ReplayResult& result, bool died, uint64_t peak, Tally& tally) {
  const uint64_t ours = result.stats.reserved_bytes.peak;
  const bool same_outcome = result.oom.has_value() == died;
  ++tally.rows;
  tally.outcomes += same_outcome;
  tally.exact += same_outcome && ours == peak;
  tally.with_reason += !result.replay_limitations.empty();
  if (!result.replay_limitations.empty()) return;
  EXPECT_TRUE(same_outcome);
  const double difference = std::abs(static_cast<double>(ours) - static_cast<double>(peak));
  EXPECT_LE(difference, 0.005 * static_cast<double>(peak)) << ours << " instead of " << peak;
}

TEST(MeasuredRuns, EveryRowIsRightOrSaysWhyNot) {
  Tally tally, unlimited;
  for (const Json& row : rows(cufit::test::source_dir() + "/tests/traces/runs.jsonl")) {
    if (!row["trace"].is_null()) continue;
    SCOPED_TRACE(row.dump().substr(0, 200));
    const Recorded& run = recorded(row["name"]);
    ReplayOptions options = options_for(run, row.value("conf", ""));
    const bool limited = row.contains("limit") && !row["limit"].is_null();
    if (limited) options.allocator.allowed_memory_maximum = allowed(row["limit"]);
    const ReplayResult result = replay(run.program, options);
    judge(result, row["outcome"] == "oom", row["peak_reserved"], tally);
    if (!limited) judge(result, row["outcome"] == "oom", row["peak_reserved"], unlimited);
  }
  EXPECT_EQ(tally.rows, 140u);
  EXPECT_EQ(tally.outcomes, 140u);
  EXPECT_GE(tally.exact, 134u);
  EXPECT_LE(tally.with_reason, 33u);  // not sprayed on everything
  EXPECT_EQ(unlimited.rows, 56u);
  // The 56th varies from run to run: five later runs of it had what is predicted here.
  EXPECT_GE(unlimited.exact, 55u);
  EXPECT_LE(unlimited.with_reason, 3u);
}

// Recorded after the model was done; nothing was changed for these.
TEST(MeasuredRuns, UnseenWorkloads) {
  Tally tally;
  for (const Json& row : rows(cufit::test::source_dir() + "/tests/traces/unseen.jsonl")) {
    SCOPED_TRACE(row.dump().substr(0, 200));
    const Recorded& run = recorded("unseen-" + row["name"].get<std::string>());
    const ReplayOptions recorded_options = options_for(run, "");
    EXPECT_TRUE(verify(run.program, recorded_options).exact());
    ReplayOptions options = options_for(run, row.value("conf", ""));
    if (row.contains("limit")) options.allocator.allowed_memory_maximum = allowed(row["limit"]);
    const ReplayResult result = replay(run.program, options);
    judge(result, row["outcome"] == "oom", row["peak_reserved"], tally);
  }
  EXPECT_EQ(tally.rows, 112u);
  EXPECT_EQ(tally.outcomes, 112u);
  EXPECT_EQ(tally.exact, 112u);
  EXPECT_LE(tally.with_reason, 14u);
}

TEST(MeasuredRuns, EveryRecordedRunVerifies) {
  size_t runs = 0;
  for (const Json& row : rows(cufit::test::source_dir() + "/tests/traces/runs.jsonl")) {
    if (row["trace"].is_null()) continue;
    const std::string file = row["trace"];
    SCOPED_TRACE(file);
    const Recorded& run = recorded(file.substr(0, file.find(".pkl")));
    EXPECT_EQ(run.program.contradictions, 0u);
    const Verification check = verify(run.program, options_for(run, row.value("conf", "")));
    EXPECT_TRUE(check.exact()) << "event " << *check.first_difference;
    EXPECT_EQ(check.segment_events_matched, check.segment_events);
    EXPECT_EQ(check.addresses_matched, check.allocations);
    EXPECT_EQ(check.result.stats.reserved_bytes.peak, row["peak_reserved"].get<uint64_t>());
    ++runs;
  }
  EXPECT_EQ(runs, 15u);
}

// The recorded settings and limit again, with addresses that are not fed back but follow from what
// the recording tells of the driver.
TEST(MeasuredRuns, AReplayAsRecordedIsTheRecordedRun) {
  std::map<std::string, Json> specs;
  for (const Json& row : rows(cufit::test::source_dir() + "/tests/traces/runs.jsonl")) {
    if (row["trace"].is_null()) continue;
    const std::string file = row["trace"];
    specs[file.substr(0, file.find(".pkl"))] = row;
  }
  for (const char* name :
       {"trace-resnet", "trace-varlen", "trace-gpt2-stacks", "unseen-unet", "unseen-encoder",
        "unseen-generate", "unseen-rnn", "unseen-prefetch", "unseen-tables", "unseen-bf16"})
    specs[name] = Json::object();
  specs["oom-varlen"]["limit"] = uint64_t(17.963 * 1073741824);
  for (const auto& [name, spec] : specs) {
    SCOPED_TRACE(name);
    const Recorded& run = recorded(name);
    ReplayOptions options = options_for(run, spec.value("conf", ""));
    if (spec.contains("limit")) options.allocator.allowed_memory_maximum = allowed(spec["limit"]);
    std::vector<SegmentEvent> log;
    const ReplayResult result = replay(run.program, options, &log);
    const DeviceStats& stats = result.stats;
    const DeviceStats expected = verify(run.program, options).result.stats;
    EXPECT_EQ(stats.reserved_bytes.peak, expected.reserved_bytes.peak);
    EXPECT_EQ(stats.allocated_bytes.peak, expected.allocated_bytes.peak);
    EXPECT_EQ(stats.active_bytes.peak, expected.active_bytes.peak);
    EXPECT_EQ(stats.segments.peak, expected.segments.peak);
    EXPECT_EQ(stats.num_alloc_retries, expected.num_alloc_retries);
    EXPECT_EQ(stats.cuda_mallocs, expected.cuda_mallocs);
    EXPECT_EQ(stats.cuda_frees, expected.cuda_frees);
    EXPECT_EQ(stats.maps, expected.maps);
    EXPECT_EQ(result.replay_limitations, std::vector<std::string>());
    ASSERT_EQ(log.size(), run.program.segment_calls.size());
    for (size_t i = 0; i < log.size(); ++i) {
      const RecordedCall& call = run.program.segment_calls[i];
      EXPECT_EQ(static_cast<int>(log[i].action), static_cast<int>(call.kind)) << i;
      EXPECT_EQ(log[i].size, call.size) << i;
      const bool is_placed = log[i].action == SegmentAction::segment_alloc;
      if (is_placed) {
        EXPECT_EQ(log[i].address, call.address) << i;
      }
    }
  }
}

// A recording of expandable segments tells no addresses of others: it says so where they matter.
TEST(MeasuredRuns, FromExpandableSegments) {
  const Recorded& run = recorded("varlen-expandable");
  const ReplayResult plain = replay(run.program, options_for(run, ""));
  EXPECT_EQ(plain.stats.reserved_bytes.peak, recorded("varlen").program.recorded_peak);
  EXPECT_EQ(plain.replay_limitations, std::vector<std::string>());
  const ReplayResult split = replay(run.program, options_for(run, "max_split_size_mb:64"));
  EXPECT_EQ(split.replay_limitations, std::vector<std::string>{"segment_addresses"});
}

// The steps of trace-varlen begin with a batch of 16 sequences of 80 to 640 ids, after the frees of
// the step before.
std::vector<uint32_t> steps_of_varlen(const Recording& recording) {
  std::vector<uint32_t> starts;
  size_t frees = 0;
  for (uint32_t i = 0; i < recording.events.size(); ++i) {
    const RecordedEvent& event = recording.events[i];
    const bool is_batch = event.action == Action::alloc && event.size % 128 == 0 &&
                          event.size >= 80 * 128 && event.size <= 640 * 128;
    if (is_batch && frees > 50) starts.push_back(i);
    const bool is_free =
        event.action == Action::free_requested || event.action == Action::free_completed;
    frees = is_free ? frees + 1 : 0;
  }
  return starts;
}

// Peak reserved of each step.
std::vector<uint64_t> peaks_by_step(const std::vector<SegmentEvent>& log,
                                    const std::vector<uint32_t>& starts) {
  std::vector<uint64_t> peaks(starts.size() + 1);
  uint64_t held = 0;
  size_t next = 0;
  for (size_t step = 0; step < peaks.size(); ++step) {
    peaks[step] = held;
    for (; next < log.size() && (step == starts.size() || log[next].at < starts[step]); ++next) {
      const bool more = log[next].action == SegmentAction::segment_alloc ||
                        log[next].action == SegmentAction::segment_map;
      held = more ? held + log[next].size : held - log[next].size;
      peaks[step] = std::max(peaks[step], held);
    }
  }
  return peaks;
}

size_t equal_steps(const std::vector<uint64_t>& ours, const Json& row) {
  size_t same = 0;
  while (same < ours.size() && same < row["peaks"].size() &&
         ours[same] == row["peaks"][same][1].get<uint64_t>())
    ++same;
  return same;
}

class SharedRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "no ../shared/gpu";
  }
  const std::string folder_ = cufit::test::source_dir() + "/../shared/gpu";
};

TEST_F(SharedRuns, EveryRowOfOtherSettingsAndLimits) {
  Tally tally;
  for (const char* file : {"/whatif-h200.jsonl", "/limits-h200.jsonl"})
    for (const Json& row : rows(folder_ + file)) {
      SCOPED_TRACE(row.dump().substr(0, 250));
      const Recorded& run = recorded("trace-" + row["tag"].get<std::string>());
      ReplayOptions options = options_for(run, row.value("alloc_conf", ""));
      if (row.contains("limit_gib"))
        options.allocator.allowed_memory_maximum =
            allowed(row["limit_gib"].get<double>() * 1073741824);
      const ReplayResult result = replay(run.program, options);
      judge(result, row["outcome"] == "oom", row["peak_reserved"], tally);
      if (result.replay_limitations.empty()) {
        EXPECT_EQ(result.stats.reserved_bytes.peak, row["peak_reserved"].get<uint64_t>());
      }
    }
  EXPECT_EQ(tally.rows, 23u);
  EXPECT_EQ(tally.outcomes, 23u);
  EXPECT_EQ(tally.exact, 20u);
  // Three that met a full card, three that free segments and depend on where new ones go.
  EXPECT_LE(tally.with_reason, 6u);
}

// The three rows with a reason met a full card, which other processes shared. Up to there each step
// has the predicted peak; with what the card gave, one of them all thirty.
TEST_F(SharedRuns, RowsThatMetAFullCardAreExactUpToThere) {
  const Recorded& run = recorded("trace-varlen");
  const std::vector<uint32_t> starts = steps_of_varlen(run.recording);
  ASSERT_EQ(starts.size(), 29u);
  struct Expected {
    size_t alone, at_capacity;
    uint64_t capacity;
  };
  const std::map<std::string, Expected> disturbed = {
      {"max_split_size_mb:128", {23, 26, 84900000000}},
      {"max_split_size_mb:512", {20, 20, 0}},
      {"max_split_size_mb:64,garbage_collection_threshold:0.6", {24, 30, 128161153024}}};
  for (const Json& row : rows(folder_ + "/whatif-h200.jsonl")) {
    if (row["tag"] != "varlen") continue;
    const std::string settings = row.value("alloc_conf", "");
    SCOPED_TRACE(settings);
    ReplayOptions options = options_for(run, settings);
    std::vector<SegmentEvent> log;
    const ReplayResult result = replay(run.program, options, &log);
    const auto found = disturbed.find(settings);
    const size_t exact = equal_steps(peaks_by_step(log, starts), row);
    EXPECT_EQ(exact, found == disturbed.end() ? 30 : found->second.alone);
    if (found == disturbed.end() || found->second.capacity == 0) continue;
    EXPECT_EQ(result.replay_limitations, std::vector<std::string>{"capacity_unknown"});
    options.capacity = found->second.capacity;
    log.clear();
    replay(run.program, options, &log);
    EXPECT_EQ(equal_steps(peaks_by_step(log, starts), row), found->second.at_capacity);
  }
}

}  // namespace measured_runs_test
}  // namespace cufit::memory
