// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/recorded_answer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace recorded_answer_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

// Of small_program(), which took `reserved` where it was recorded.
RecordedRun run(uint64_t batch, uint64_t reserved) {
  RecordedRun out;
  out.trace.events = small_program(batch).read();
  for (const StorageCategory category : out.trace.events.categories)
    out.trace.growth.push_back(category == StorageCategory::unknown ||
                                       category == StorageCategory::input
                                   ? formats::BatchGrowth::grows
                                   : formats::BatchGrowth::fixed);
  out.trace.from_start = true;
  out.about = {std::to_string(batch) + ".pickle", batch, 3, reserved, reserved};
  out.version = memory::version_profile(2, 9);
  return out;
}

Answer answered(std::vector<RecordedRun> runs, const Question& question = {}) {
  Result<Answer> got = recorded_answer(std::move(runs), question, tables());
  EXPECT_TRUE(got) << (got ? "" : got.error().text());
  return std::move(*got);
}

const Warning* find_warning(const Answer& answer, const std::string& id) {
  const auto found = std::find_if(answer.warnings.begin(), answer.warnings.end(),
                                  [&](const Warning& warning) { return warning.id == id; });
  return found == answer.warnings.end() ? nullptr : &*found;
}

// What its replay gives.
uint64_t replayed(uint64_t batch) { return answered({run(batch, 1)}).recorded->replayed_reserved; }

TEST(RecordedAnswer, OfTwoRunsIsProved) {
  const Answer got = answered({run(16, replayed(16)), run(8, replayed(8))});
  ASSERT_TRUE(got.recorded);
  EXPECT_EQ(got.recorded->recordings[0].batch, 8u);  // by batch, however they are given
  EXPECT_EQ(got.batch, 16u);
  EXPECT_EQ(got.recorded->storages, got.recorded->proved);
  EXPECT_TRUE(find_warning(got, "recorded_twice"));
  EXPECT_FALSE(find_warning(got, "recorded_replay"));
  EXPECT_FALSE(find_warning(got, "recorded_late"));
  EXPECT_FALSE(got.unanswered);
  for (const uint64_t batch : {4, 8, 16, 32, 64})
    EXPECT_TRUE(std::any_of(got.curve.begin(), got.curve.end(), [&](const CurvePoint& at) {
      return at.batch == batch;
    })) << batch;
}

TEST(RecordedAnswer, SaysWhatTheReplayMisses) {
  const uint64_t was = replayed(8) + 64 * k_mib;
  const Answer got = answered({run(8, was)});
  const Warning* warning = find_warning(got, "recorded_replay");
  ASSERT_TRUE(warning);
  EXPECT_EQ(warning->sizes.at("recorded"), was);
  EXPECT_EQ(warning->sizes.at("replayed"), was - 64 * k_mib);
  EXPECT_GE(got.prediction.peak_reserved_upper, was);
}

TEST(RecordedAnswer, WarnsOfABatchFarFromTheRecordedOne) {
  Question question;
  question.batch = 32;
  EXPECT_FALSE(find_warning(answered({run(8, replayed(8))}, question), "recorded_far"));
  question.batch = 33;
  EXPECT_TRUE(find_warning(answered({run(8, replayed(8))}, question), "recorded_far"));
}

TEST(RecordedAnswer, AnswersCardsByWhatIsLeftOnThem) {
  Question question;
  for (const uint64_t mib : {4096, 0}) {
    Card card;
    card.asked = true;
    card.total = card.usable = mib * k_mib;
    question.cards.push_back(card);
  }
  const Answer got = answered({run(8, replayed(8))}, question);
  EXPECT_TRUE(got.cards[0].fits);
  EXPECT_GT(got.cards[0].largest.batch, 8u);
  EXPECT_FALSE(got.cards[1].fits);
  EXPECT_FALSE(got.fits());
}

TEST(RecordedAnswer, TellsWhatTheRecordingLeavesOpen) {
  RecordedRun late = run(8, replayed(8));
  late.trace.from_start = false;
  late.trace.several_streams = late.trace.private_pools = late.trace.ran_short = true;
  late.trace.empties_cache = late.settings_unread = true;
  const Answer got = answered({late});
  for (const char* id : {"recorded_once", "recorded_late", "recorded_streams", "recorded_pools",
                         "recorded_short", "recorded_settings", "recorded_empty_cache"})
    EXPECT_TRUE(find_warning(got, id)) << id;
}

}  // namespace recorded_answer_test
}  // namespace cufit::fit
