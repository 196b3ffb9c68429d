// SPDX-License-Identifier: Apache-2.0
// What is known of a recording before anything is asked: its peaks, its limit, how far the model
// follows it, and what its replays are unsure of.
#include "memory/replay/verified_recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "memory/replay/what_if.h"
#include "support/places.h"
#include "unit/memory/replay/recorder.h"

namespace cufit::memory {
namespace verified_recording_test {

constexpr uint64_t k_gib = uint64_t{1} << 30;

// As a file would hold it, without what stays at its end.
Snapshot snapshot_of(const Recording& recording, const std::string& conf) {
  Snapshot snapshot;
  snapshot.contexts.push_back({});
  snapshot.settings.emplace();
  snapshot.settings->conf = conf;
  for (const RecordedEvent event : recording.events) {
    TraceEvent row;
    if (event.action != Action::oom) row.address = event.address;
    row.size = event.size;
    row.action = event.action;
    snapshot.events.push_back(row);
  }
  snapshot.traces.push_back({0, recording.events.size()});
  return snapshot;
}

class Events {
 public:
  // Of its own segment.
  void alloc(uint64_t address, uint64_t size) {
    add({address, size, 0, 0, Action::segment_alloc});
    use(address, size);
  }
  // Of a segment that is there.
  void use(uint64_t address, uint64_t size) { add({address, size, 0, 0, Action::alloc}); }
  void free(uint64_t address, uint64_t size) {
    add({address, size, 0, 0, Action::free_requested});
    add({address, size, 0, 0, Action::free_completed});
  }
  void release(uint64_t address, uint64_t size) {
    add({address, size, 0, 0, Action::segment_free});
  }
  void refuse(uint64_t size) { add({0, size, 0, 0, Action::oom}); }
  VerifiedRecording verified(const std::string& conf = "",
                             std::optional<uint64_t> limit = {}) const {
    return *verify_recording(snapshot_of(recording_, conf), 0, {}, {}, limit);
  }

 private:
  void add(const RecordedEvent& event) { recording_.events.push_back(event); }
  Recording recording_;
};

Answer ask_one(const VerifiedRecording& verified, const std::string& settings,
               std::optional<uint64_t> allowed = {}, std::optional<uint64_t> total = {}) {
  Question question;
  question.settings = settings;
  question.allowed = allowed;
  question.total_memory = total;
  return (*ask(verified, std::span(&question, 1)))[0];
}

bool has(const Answer& answer, const char* reason) {
  const std::vector<std::string>& all = answer.result.replay_limitations;
  return std::find(all.begin(), all.end(), reason) != all.end();
}

// What bounds a replay is what it is said to have been made under; who calls
// set_per_process_memory_fraction replaces what the settings say.
TEST(VerifiedRecording, AnAnswerNamesTheLimitThatCounts) {
  Events events;
  events.alloc(8 * k_gib, k_gib);
  const VerifiedRecording verified = events.verified();
  const auto limit = [&](const char* settings, std::optional<uint64_t> allowed) {
    Question question;
    question.settings = settings;
    question.allowed = allowed;
    question.total_memory = 24 * k_gib;
    question.capacity = 23 * k_gib;
    return (*ask(verified, std::span(&question, 1)))[0].limit;
  };
  EXPECT_EQ(limit("", {}), 23 * k_gib);
  EXPECT_EQ(limit("per_process_memory_fraction:0.5", {}), 12 * k_gib);
  EXPECT_EQ(limit("per_process_memory_fraction:0.5", 14 * k_gib), 14 * k_gib);
  EXPECT_EQ(limit("", 2 * k_gib), 2 * k_gib);
  EXPECT_EQ(ask_one(verified, "per_process_memory_fraction:0.5").limit, std::nullopt);
  EXPECT_EQ(ask_one(verified, "").limit, std::nullopt);
}

// A part of a card that nobody named: 80 GiB are less than half of one card and more of another.
TEST(VerifiedRecording, AMemoryFractionIsNoLimitUntilTheCardIsKnown) {
  Events events;
  for (uint64_t i = 0; i < 10; ++i) events.alloc((i + 1) * 16 * k_gib, 8 * k_gib);
  const std::string conf = "per_process_memory_fraction:0.5";
  const VerifiedRecording verified = events.verified(conf);
  EXPECT_TRUE(verified.verification.exact());
  EXPECT_FALSE(verified.verification.result.oom);
  EXPECT_FALSE(verified.limit);
  EXPECT_EQ(verified.peak_reserved, 80 * k_gib);
  EXPECT_EQ(verified.peak_allocated, 80 * k_gib);
  const Answer unknown = ask_one(verified, conf);
  EXPECT_TRUE(unknown.survives());
  EXPECT_TRUE(has(unknown, "memory_fraction"));
  const Answer large = ask_one(verified, conf, {}, 192 * k_gib);
  EXPECT_TRUE(large.survives());
  EXPECT_FALSE(has(large, "memory_fraction"));
  EXPECT_FALSE(ask_one(verified, conf, {}, 140 * k_gib).survives());
  const Answer limited = ask_one(verified, conf, 79 * k_gib);
  EXPECT_FALSE(limited.survives());
  EXPECT_FALSE(has(limited, "memory_fraction"));
}

TEST(VerifiedRecording, GarbageIsFollowedBelowTheLimitThatIsGiven) {
  const std::string conf = "garbage_collection_threshold:0.6";
  size_t collected = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const uint64_t limit = 700 * k_mib;
    Recorder recorder(conf.c_str(), limit, seed);
    const Snapshot snapshot = snapshot_of(recorder.record(1500), conf);
    const VerifiedRecording blind = *verify_recording(snapshot, 0, {});
    const VerifiedRecording verified = *verify_recording(snapshot, 0, {}, {}, limit);
    EXPECT_TRUE(verified.verification.exact()) << seed;
    EXPECT_EQ(verified.peak_reserved, recorder.stats.reserved_bytes.peak) << seed;
    EXPECT_EQ(verified.peak_allocated, recorder.stats.allocated_bytes.peak) << seed;
    EXPECT_TRUE(reasons_of(verified).empty());
    // A limit that it cannot have been does no harm.
    const VerifiedRecording wrong = *verify_recording(snapshot, 0, {}, {}, 200 * k_mib);
    EXPECT_GE(wrong.verification.segment_events_matched, blind.verification.segment_events_matched);
    if (blind.verification.exact()) continue;
    ++collected;
    EXPECT_EQ(reasons_of(blind), std::vector<std::string>{"garbage_collected"}) << seed;
    EXPECT_EQ(blind.peak_reserved, recorder.stats.reserved_bytes.peak) << seed;
    EXPECT_TRUE(has(ask_one(blind, ""), "garbage_collected"));
  }
  EXPECT_GE(collected, 5u);
}

// What a recording served is no out-of-memory, whatever the model makes of it.
TEST(VerifiedRecording, ItRanOutWhereTheRecordingSaysSo) {
  Events events;
  events.alloc(1 * k_gib, 100 * k_mib);
  events.free(1 * k_gib, 100 * k_mib);
  events.release(1 * k_gib, 100 * k_mib);
  events.use(2 * k_gib, 50 * k_mib);  // of a segment that nobody recorded
  const VerifiedRecording verified = events.verified();
  EXPECT_FALSE(verified.verification.exact());
  EXPECT_FALSE(verified.verification.result.oom);
  EXPECT_FALSE(verified.limit);
  EXPECT_EQ(verified.peak_reserved, 100 * k_mib);
  EXPECT_EQ(verified.peak_allocated, 100 * k_mib);
  events.refuse(60 * k_mib);
  EXPECT_TRUE(events.verified().verification.result.oom);
}

// 1 GiB comes back before 1.5 GiB are asked for.
Events release_origin() {
  Events events;
  events.alloc(8 * k_gib, k_gib);
  events.free(8 * k_gib, k_gib);
  events.release(8 * k_gib, k_gib);
  events.alloc(16 * k_gib, k_gib + k_gib / 2);
  return events;
}

// torch.cuda.empty_cache(), or a limit between 1.5 and 2.5 GiB.
TEST(VerifiedRecording, WhatWasGivenBackFarBelowWhatWouldHaveBeenHeldIsTheProgramsDoing) {
  Events events = release_origin();
  const VerifiedRecording verified = events.verified();
  EXPECT_TRUE(verified.verification.exact());
  EXPECT_TRUE(verified.program->has_doubts);
  for (const std::optional<uint64_t> limit :
       {std::optional<uint64_t>(), std::optional(4 * k_gib)}) {
    const Answer answer = ask_one(verified, "", limit);
    EXPECT_EQ(answer.result.stats.reserved_bytes.peak, verified.peak_reserved);
    EXPECT_TRUE(has(answer, "empty_cache"));
  }
  // Nothing hangs on it where a limit makes it go back in either case, or where it need not.
  EXPECT_FALSE(has(ask_one(verified, "", 2 * k_gib), "empty_cache"));
  EXPECT_FALSE(has(ask_one(verified, "expandable_segments:True"), "empty_cache"));
  // A run that ran out had a limit.
  events.refuse(k_gib);
  const VerifiedRecording died = events.verified();
  EXPECT_FALSE(died.program->has_doubts);
  EXPECT_EQ(ask_one(died, "").result.stats.reserved_bytes.peak, 5 * k_gib / 2);
}

// 2 GiB are held, 50 MiB more would have been: a limit, as long as nothing else tells.
TEST(VerifiedRecording, WhatWasGivenBackCloseToTheMostThatWasHeldIsALimits) {
  Events events;
  events.alloc(8 * k_gib, 1900 * k_mib);
  events.alloc(16 * k_gib, 100 * k_mib);
  events.free(16 * k_gib, 100 * k_mib);
  events.release(16 * k_gib, 100 * k_mib);
  events.alloc(32 * k_gib, 150 * k_mib);
  const VerifiedRecording verified = events.verified();
  const Answer recorded = ask_one(verified, "");
  EXPECT_EQ(recorded.result.stats.reserved_bytes.peak, 2150 * k_mib);
  EXPECT_TRUE(has(recorded, "empty_cache"));
  // Who calls empty_cache() once may have called it then, too.
  events.free(32 * k_gib, 150 * k_mib);
  events.release(32 * k_gib, 150 * k_mib);
  events.free(8 * k_gib, 1900 * k_mib);
  const Answer calls = ask_one(events.verified(), "");
  EXPECT_EQ(calls.result.stats.reserved_bytes.peak, verified.peak_reserved);
  EXPECT_TRUE(has(calls, "empty_cache"));
}

Snapshot load_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return read_snapshot(std::make_shared<MemorySource>(path.string(), bytes.str())).value();
}

Snapshot load(const std::string& name) {
  return load_file(cufit::test::source_dir() + "/tests/traces/" + name + ".pkl.gz");
}

TEST(VerifiedRecording, RealSegmentsLieByTheDriversRule) {
  size_t long_ones = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(cufit::test::source_dir() + "/tests/traces")) {
    if (entry.path().extension() != ".gz") continue;
    SCOPED_TRACE(entry.path().filename());
    const Snapshot snapshot = load_file(entry.path());
    const VerifiedRecording verified = *verify_recording(snapshot, busiest_device(snapshot), {});
    const Placement& placement = verified.program->placement;
    EXPECT_TRUE(placement.follows_rule());
    if (placement.placed < 16) continue;
    ++long_ones;
    EXPECT_LE(2 * placement.unforeseen, placement.placed);
  }
  EXPECT_GE(long_ones, 40u);
}

// On an H100, below 2.998 GiB.
TEST(VerifiedRecording, ARealRunThatCollectedGarbage) {
  const Snapshot snapshot = load("collected-limit2.998");
  const auto limit = static_cast<uint64_t>(2.998 * double(k_gib));
  const VerifiedRecording blind = *verify_recording(snapshot, 0, {});
  EXPECT_EQ(blind.verification.segment_events_matched, 58u);
  EXPECT_FALSE(blind.limit);
  EXPECT_FALSE(blind.retries);  // what was collected was not given back for want of memory
  EXPECT_FALSE(blind.met_limit);
  EXPECT_EQ(blind.peak_reserved, 2485125120u);
  EXPECT_EQ(blind.peak_allocated, 1613394432u);
  EXPECT_EQ(reasons_of(blind), std::vector<std::string>{"garbage_collected"});
  const VerifiedRecording verified = *verify_recording(snapshot, 0, {}, {}, limit);
  EXPECT_TRUE(verified.verification.exact());
  EXPECT_EQ(verified.verification.segment_events_matched, 70u);
  const Answer recorded = ask_one(verified, verified.settings, limit);
  EXPECT_EQ(recorded.result.stats.reserved_bytes.peak, 2485125120u);
  EXPECT_EQ(recorded.result.stats.num_alloc_retries, 0u);
  EXPECT_TRUE(recorded.result.replay_limitations.empty());
}

// On an H100, below 2.427 GiB: it called empty_cache() and met the limit, three times.
TEST(VerifiedRecording, ARealRunThatEmptiedItsCacheAndMetALimit) {
  const VerifiedRecording verified = *verify_recording(load("emptied-limit2.427"), 0, {});
  EXPECT_TRUE(verified.verification.exact());
  EXPECT_EQ(verified.peak_reserved, 2596274176u);
  EXPECT_TRUE(has(ask_one(verified, ""), "empty_cache"));
  const Answer limited = ask_one(verified, "", static_cast<uint64_t>(2.427 * double(k_gib)));
  EXPECT_EQ(limited.result.stats.reserved_bytes.peak, 2596274176u);
  EXPECT_TRUE(limited.result.replay_limitations.empty());  // the same in either reading
}

TEST(VerifiedRecording, ACardWithNothingLeftIsABound) {
  Events events;
  events.refuse(k_gib);
  Question question;
  question.capacity = 0;
  EXPECT_FALSE((*ask(events.verified(), std::span(&question, 1)))[0].survives());
}

// As much was held at another time: then no limit made it go back.
TEST(VerifiedRecording, WhatWouldHaveFittedWasNoLimit) {
  Events events = release_origin();
  events.alloc(32 * k_gib, k_gib);
  const VerifiedRecording verified = events.verified();
  EXPECT_FALSE(verified.program->has_doubts);
  const Answer recorded = ask_one(verified, "", 4 * k_gib);
  EXPECT_EQ(recorded.result.stats.reserved_bytes.peak, verified.peak_reserved);
  EXPECT_TRUE(recorded.result.replay_limitations.empty());
}

}  // namespace verified_recording_test
}  // namespace cufit::memory
