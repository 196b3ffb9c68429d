// SPDX-License-Identifier: Apache-2.0
// Questions to real recordings (tests/traces): the recorded run is found again, limits are found,
// answers do not depend on how many are asked at once.
#include "memory/replay/what_if.h"
#include "support/places.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace cufit::memory {
namespace what_if_test {

Snapshot load_file(const std::string& name) {
  std::ifstream file(cufit::test::source_dir() + "/tests/traces/" + name, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return std::move(*read_snapshot(std::make_shared<MemorySource>(name, bytes.str())));
}

Snapshot load(const std::string& name) { return load_file(name + ".pkl.gz"); }

TEST(WhatIf, RepeatsEveryProgramThatDied) {
  size_t files = 0;
  const std::string folder = cufit::test::source_dir() + "/tests/traces/oom";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const Snapshot snapshot = load_file("oom/" + name);
    const Result<VerifiedRecording> verified =
        verify_recording(snapshot, busiest_device(snapshot), {});
    ASSERT_TRUE(verified) << name << verified.error().text();
    EXPECT_TRUE(verified->verification.exact()) << name;
    EXPECT_EQ(verified->verification.segment_events_matched, verified->verification.segment_events);
    EXPECT_EQ(verified->limit.has_value(), name.rfind("survives", 0) != 0) << name;
    if (name.rfind("other_process", 0) == 0) {
      EXPECT_TRUE(verified->limit->card_full);
    } else if (verified->limit && name.rfind("fragmentation", 0) != 0 &&
               name.rfind("autotune", 0) != 0) {  // all others had a limit of 2 GiB
      EXPECT_LE(verified->limit->at_least, uint64_t{2} << 30) << name;
      EXPECT_GE(verified->limit->below, uint64_t{2} << 30) << name;
    }
    ++files;
  }
  EXPECT_GE(files, 16u);
}

TEST(WhatIf, SettingsOfATorchToComeAreTakenFromTheFields) {
  Snapshot snapshot = load("varlen-expandable");
  ASSERT_TRUE(snapshot.settings && snapshot.settings->conf);
  const Result<VerifiedRecording> before = verify_recording(snapshot, 0, {});
  ASSERT_TRUE(before) << before.error().text();
  snapshot.settings->conf = *snapshot.settings->conf + ",key_to_come:7";
  const Result<VerifiedRecording> verified = verify_recording(snapshot, 0, {});
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_TRUE(verified->recording.settings.expandable_segments);
  EXPECT_EQ(verified->verification.segment_events_matched,
            before->verification.segment_events_matched);
  Question question;
  question.settings = verified->settings;
  for (const VerifiedRecording* one : {&*before, &*verified}) {
    const auto answers = ask(*one, std::span(&question, 1));
    ASSERT_TRUE(answers);
    const std::vector<std::string>& reasons = (*answers)[0].result.replay_limitations;
    EXPECT_EQ(std::count(reasons.begin(), reasons.end(), "settings_unread"),
              one == &*verified ? 1 : 0);
  }
  // Who names a version is told that it does not know the key.
  EXPECT_FALSE(verify_recording(snapshot, 0, version_profile(2, 11)));
}

TEST(WhatIf, TheDeviceThatRanOutComesFirst) {
  Snapshot snapshot = load("two-gpus");
  EXPECT_FALSE(ran_out(snapshot, 0));
  snapshot.events[snapshot.traces[0].first].action = Action::oom;
  EXPECT_TRUE(ran_out(snapshot, 0));
  EXPECT_EQ(busiest_device(snapshot), 0u);
}

TEST(WhatIf, DevicesOfOneProcessAreReplayedApart) {
  const Snapshot snapshot = load("two-gpus");
  uint64_t peaks = 0;
  for (const uint32_t device : {0u, 1u}) {
    const Result<VerifiedRecording> verified = verify_recording(snapshot, device, {});
    ASSERT_TRUE(verified) << device;
    EXPECT_TRUE(verified->verification.exact()) << device;
    EXPECT_FALSE(peaks == verified->verification.result.stats.reserved_bytes.peak);
    peaks = verified->verification.result.stats.reserved_bytes.peak;
  }
  EXPECT_EQ(busiest_device(snapshot), 1u);
}

TEST(WhatIf, FindsTheRecordedRunAgain) {
  for (const char* name : {"varlen", "amp-roundup4", "varlen-expandable", "streams-split64"}) {
    const Snapshot snapshot = load(name);
    const Result<VerifiedRecording> verified =
        verify_recording(snapshot, busiest_device(snapshot), {});
    ASSERT_TRUE(verified) << name << verified.error().text();
    EXPECT_TRUE(verified->verification.exact()) << name;
    EXPECT_EQ(verified->limit, std::nullopt) << name;
    // The recorded settings as text mean what they were.
    const auto settings = parse_allocator_settings(verified->settings, verified->recording.version);
    ASSERT_TRUE(settings) << verified->settings;
    EXPECT_EQ(settings_text(*settings), settings_text(verified->recording.settings)) << name;
  }
}

// The run of oom-varlen.pkl.gz had set_per_process_memory_fraction at 17.963 GiB.
TEST(WhatIf, ARunThatDiedTellsItsLimit) {
  const auto verified = verify_recording(load("oom-varlen"), 0, {});
  ASSERT_TRUE(verified && verified->limit);
  EXPECT_FALSE(verified->limit->card_full);
  EXPECT_LE(verified->limit->at_least, uint64_t(17.963 * (1u << 30)));
  EXPECT_GT(verified->limit->below, uint64_t(17.963 * (1u << 30)));
  // At the least bound it dies at the same event, at the upper one it goes on.
  Question least, below;
  least.allowed = verified->limit->at_least;
  below.allowed = verified->limit->below;
  const auto answers = ask(*verified, std::vector<Question>{least, below});
  ASSERT_TRUE(answers);
  ASSERT_TRUE((*answers)[0].result.oom);
  EXPECT_EQ((*answers)[0].result.oom->event, verified->verification.result.oom->event);
  EXPECT_TRUE(!(*answers)[1].result.oom ||
              (*answers)[1].result.oom->event > verified->verification.result.oom->event);
}

TEST(WhatIf, ManyAnswersAreThoseOfOneByOne) {
  const auto verified = verify_recording(load("accum"), 0, {});
  ASSERT_TRUE(verified);
  std::vector<Question> questions;
  for (int round = 0; round < 3; ++round)
    for (const std::string_view settings : usual_settings())
      questions.push_back({std::string(settings), {}, {}, {}});
  const auto all = ask(*verified, questions);
  ASSERT_TRUE(all && all->size() == questions.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    const auto one = ask(*verified, std::span(&questions[i], 1));
    ASSERT_TRUE(one);
    EXPECT_EQ((*one)[0].result.stats.reserved_bytes.peak,
              (*all)[i].result.stats.reserved_bytes.peak)
        << questions[i].settings;
    EXPECT_EQ((*all)[i].question.settings, questions[i].settings);
  }
}

// verify_recording tries one version of several that read the same settings.
TEST(WhatIf, ThreadsThatWorkAtOneInquiryAnswerEachQuestionOnce) {
  const Snapshot snapshot = load("varlen");
  const VerifiedRecording verified = *verify_recording(snapshot, 0, {});
  std::vector<Question> questions;
  for (const std::string_view settings : usual_settings())
    for (int twice = 0; twice < 2; ++twice) {
      questions.emplace_back();
      questions.back().settings = settings;
    }
  const auto inquiry =
      Inquiry::make(std::make_shared<const VerifiedRecording>(verified), questions);
  ASSERT_TRUE(inquiry);
  EXPECT_LE((*inquiry)->replays(), questions.size() / 2);
  std::mutex hearing;
  std::vector<size_t> heard;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      (*inquiry)->work([&](size_t done) {
        const std::lock_guard lock(hearing);
        heard.push_back(done);
      });
    });
  const std::vector<Answer> early = (*inquiry)->answers();  // while they are at it
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(heard.size(), (*inquiry)->replays());  // answers() took part
  EXPECT_TRUE(std::is_sorted(heard.begin(), heard.end()));
  ASSERT_EQ(early.size(), questions.size());
  for (size_t i = 0; i < early.size(); ++i) {
    EXPECT_EQ(early[i].question.settings, questions[i].settings);
    const auto alone = ask(verified, std::span(&questions[i], 1));
    EXPECT_EQ(early[i].result.stats.reserved_bytes.peak,
              (*alone)[0].result.stats.reserved_bytes.peak);
    EXPECT_EQ(early[i].result.replay_limitations, (*alone)[0].result.replay_limitations);
  }
  size_t told = 0;
  ASSERT_TRUE(ask(verified, questions, [&](size_t done) { told = done; }));
  EXPECT_EQ(told, questions.size());
  questions.back().settings = "no_such_key:1";
  EXPECT_FALSE(Inquiry::make(std::make_shared<const VerifiedRecording>(verified), questions));
}

TEST(WhatIf, WithTheSameSettingsAllVersionsRepeatARecordingAlike) {
  for (const char* name : {"varlen-limit1.2", "graphs", "varlen-ring", "oom-varlen"}) {
    const Snapshot snapshot = load(name);
    const VerifiedRecording verified = *verify_recording(snapshot, busiest_device(snapshot), {});
    ReplayOptions options;
    options.allocator.settings = verified.recording.settings;
    for (uint32_t minor = 0; minor <= 14; ++minor) {
      options.allocator.version = version_profile(2, minor);
      std::vector<uint64_t> block_bytes;
      const Verification check = verify(*verified.program, options, &block_bytes);
      EXPECT_EQ(check.segment_events_matched, verified.verification.segment_events_matched)
          << minor;
      EXPECT_EQ(check.addresses_matched, verified.verification.addresses_matched) << minor;
      EXPECT_EQ(check.first_difference, verified.verification.first_difference) << minor;
      EXPECT_EQ(block_bytes, verified.block_bytes) << minor;
    }
  }
}

// ask replays such questions once.
TEST(WhatIf, GarbageIsCollectedBelowALimitOnly) {
  const VerifiedRecording verified = *verify_recording(load("varlen"), 0, {});
  std::vector<Question> questions(4);
  questions[1].settings = questions[3].settings = "garbage_collection_threshold:0.6";
  const uint64_t peak = verified.verification.result.stats.reserved_bytes.peak;
  questions[2].allowed = questions[3].allowed = peak + peak / 10;
  const std::vector<Answer> answers = *ask(verified, questions);
  const auto frees = [&](size_t i) { return answers[i].result.stats.cuda_frees; };
  EXPECT_EQ(answers[1].question.settings, questions[1].settings);
  EXPECT_EQ(frees(1), frees(0));
  EXPECT_NE(frees(3), frees(2));
  ReplayOptions options;
  options.allocator.settings =
      *parse_allocator_settings(questions[1].settings, verified.recording.version);
  options.allocator.version = verified.recording.version;
  const ReplayResult alone = replay(*verified.program, options);
  EXPECT_EQ(alone.stats.cuda_frees, frees(1));
  EXPECT_EQ(alone.stats.reserved_bytes.peak, answers[1].result.stats.reserved_bytes.peak);
  EXPECT_EQ(alone.replay_limitations, answers[1].result.replay_limitations);
}

TEST(WhatIf, ASmallerLimitNeverComesFurther) {
  const auto verified = verify_recording(load("amp"), 0, {});
  ASSERT_TRUE(verified);
  const uint64_t peak = verified->verification.result.stats.reserved_bytes.peak;
  std::vector<Question> questions;
  for (int percent = 40; percent <= 110; percent += 5) {
    Question question;
    question.allowed = peak / 100 * static_cast<uint64_t>(percent);
    questions.push_back(question);
  }
  const auto answers = ask(*verified, questions);
  ASSERT_TRUE(answers);
  for (size_t i = 1; i < answers->size(); ++i) {
    const auto came_to = [&](size_t k) {
      const auto& oom = (*answers)[k].result.oom;
      return oom ? oom->event : UINT64_MAX;
    };
    EXPECT_LE(came_to(i - 1), came_to(i));
    EXPECT_LE((*answers)[i].result.stats.reserved_bytes.peak, *(*answers)[i].question.allowed);
  }
  EXPECT_TRUE(answers->front().result.oom);
  EXPECT_FALSE(answers->back().result.oom);
}

TEST(WhatIf, SettingsOfTheCommandLine) {
  EXPECT_EQ(settings_from_option("expandable_segments=True"), "expandable_segments:True");
  EXPECT_EQ(settings_from_option("max_split_size_mb:128,garbage_collection_threshold=0.8"),
            "max_split_size_mb:128,garbage_collection_threshold:0.8");
  EXPECT_EQ(settings_from_option("roundup_power2_divisions=[256:1,512=2,>:4]"),
            "roundup_power2_divisions:[256:1,512:2,>:4]");
  EXPECT_EQ(settings_from_option(""), "");
  const auto verified = verify_recording(load("streams"), 0, {});
  ASSERT_TRUE(verified);
  const Question wrong{"expandable_segments:yes", {}, {}, {}};
  const auto answers = ask(*verified, std::span(&wrong, 1));
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code, Code::usage);
}

TEST(WhatIf, SaysWhereThereIsNoTrace) {
  const Snapshot snapshot = load("streams");
  EXPECT_FALSE(verify_recording(snapshot, 7, {}));
}

}  // namespace what_if_test
}  // namespace cufit::memory
