// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/traced_answer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/model/trace_facts.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace traced_answer_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

TraceWriter traced_by(const char* torch, uint64_t batch) {
  TraceWriter out(batch);
  if (torch[0] != '\0') out.fact("torch", torch);
  const Sites sites = write_sites(out);
  const uint32_t weight = out.alloc(64 * k_mib, sites.weight);
  for (int i = 0; i < 3; ++i) write_step(out, sites, batch, weight, i == 0);
  out.end();
  return out;
}

// At each of the batch sizes, by torch 2.9; the program's own is the first.
Traces traces(const std::vector<uint64_t>& batches) {
  Traces out;
  for (const uint64_t batch : batches) out.plain.push_back(traced_by("2.9.0", batch).read());
  out.own_batch = batches.front();
  return out;
}

Question question(std::vector<Card> cards = {}) {
  Question out;
  out.cards = std::move(cards);
  out.traced_card = traced_card(out.cards, tables());
  return out;
}

Card sized(uint64_t usable, bool asked = true) {
  Card out;
  out.name = std::to_string(usable);
  out.asked = asked;
  out.total = out.usable = usable;
  return out;
}

Answer answered(Traces traces, const Question& question) {
  Result<TracedAnswer> answer = TracedAnswer::begin(std::move(traces), question, tables());
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return std::move(*answer).finish();
}

bool warns(const std::vector<Warning>& warnings, const std::string& id) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const Warning& warning) { return warning.id == id; });
}

TEST(TracedAnswer, TakesTheProgramsOwnBatchSizeWhereNoneIsAsked) {
  const Answer got = answered(traces({8, 16}), question());
  EXPECT_EQ(got.batch, 8u);
  EXPECT_EQ(got.prediction.batch, 8u);
  EXPECT_FALSE(got.unanswered);
  EXPECT_TRUE(got.fits());  // no card was asked for
  Question other = question();
  other.batch = 32;
  EXPECT_EQ(answered(traces({8, 16}), other).prediction.batch, 32u);
}

// NCCL stands beside the allocator, and another rank may hold the buckets twice.
TEST(TracedAnswer, OfOneRankOfTwo) {
  const Answer alone = answered(traces({8, 16}), question());
  Traces two = traces({8, 16});
  for (formats::TraceEvents& events : two.plain) {
    formats::add_fact(events, "world", "2");
    formats::add_fact(events, "ddp_buckets", std::to_string(96 * k_mib));
  }
  const Answer got = answered(std::move(two), question());
  EXPECT_EQ(got.prediction.peak_reserved, alone.prediction.peak_reserved);
  EXPECT_EQ(got.prediction.peak_reserved_upper, alone.prediction.peak_reserved_upper + 96 * k_mib);
  EXPECT_EQ(got.prediction.peak_allocated_upper,
            alone.prediction.peak_allocated_upper + 96 * k_mib);
  EXPECT_EQ(got.prediction.outside_allocator, alone.prediction.outside_allocator + 938 * k_mib);
  Traces card = traces({8, 16});
  for (formats::TraceEvents& events : card.plain) formats::add_fact(events, "world", "2");
  const Answer on_card = answered(std::move(card), question({sized(4096 * k_mib)}));
  EXPECT_EQ(on_card.cards.at(0).usable, (4096 - 938) * k_mib);
}

TEST(TracedAnswer, SaysWhichBatchSizeItCouldNotAnswer) {
  Question asked = question();
  asked.batch = 32;
  const Answer got = answered(traces({8}), asked);
  EXPECT_EQ(got.unanswered, 32u);
  EXPECT_EQ(got.batch, 8u);
  EXPECT_TRUE(got.curve.empty());
}

TEST(TracedAnswer, OfATraceWithoutABatchSizeHasNone) {
  TraceWriter out;
  out.fact("torch", "2.9.0");
  const Sites sites = write_sites(out);
  write_step(out, sites, 4, 0, true);
  out.end();
  Traces unnamed;
  unnamed.plain.push_back(out.read());
  const Answer got = answered(std::move(unnamed), question());
  EXPECT_EQ(got.batch, 0u);
  EXPECT_FALSE(got.programs.batch_known);
  EXPECT_FALSE(warns(got.warnings, "batch_one"));  // its 1 is a name, no batch size
}

TEST(TracedAnswer, FitsWhereEveryCardThatWasAskedForHasRoom) {
  const Answer unbounded = answered(traces({8, 16}), question());
  const uint64_t needed = unbounded.prediction.peak_reserved_upper;
  const Card large = sized(4 * needed), small = sized(needed / 2);
  EXPECT_TRUE(answered(traces({8, 16}), question({large})).fits());
  EXPECT_FALSE(answered(traces({8, 16}), question({large, small})).fits());
  EXPECT_TRUE(answered(traces({8, 16}), question({large, sized(needed / 2, false)})).fits());
}

TEST(TracedAnswer, GivesEachCardItsLargestBatch) {
  const Answer got = answered(traces({8, 16}), question({sized(1024 * k_mib), sized(0)}));
  ASSERT_EQ(got.cards.size(), 2u);
  const LargestBatch& largest = got.cards[0].largest;
  EXPECT_GT(largest.batch, 16u);
  fit::Setup setup = setup_on(got.setup, got.cards[0]);
  setup.capacity = got.cards[0].usable;
  EXPECT_TRUE(predict(got.traced(), largest.batch, setup)->fits());
  EXPECT_FALSE(predict(got.traced(), largest.batch + 1, setup)->fits());
  EXPECT_TRUE(std::any_of(got.curve.begin(), got.curve.end(),
                          [&](const CurvePoint& at) { return at.batch == largest.batch; }));
  EXPECT_FALSE(got.cards[1].prediction);  // nothing is left of it
  EXPECT_EQ(got.cards[1].largest.batch, 0u);
}

TEST(TracedAnswer, SaysThatOtherCardsTakeOtherKernels) {
  Card old = sized(k_mib * 4096), same = old;
  old.cc = "7.5";
  same.cc = "8.6";
  EXPECT_TRUE(warns(answered(traces({8, 16}), question({same, old})).warnings, "other_kernels"));
  EXPECT_FALSE(warns(answered(traces({8, 16}), question({same})).warnings, "other_kernels"));
  // Kept traces, asked of other cards than they were made for.
  Traces kept = traces({8, 16});
  for (formats::TraceEvents& events : kept.plain) {
    formats::add_fact(events, "gpu", "NVIDIA T4");
    formats::add_fact(events, "capability", "7.5");
  }
  const Answer asked = answered(kept, question({same, old}));
  const auto warning = std::find_if(asked.warnings.begin(), asked.warnings.end(),
                                    [](const Warning& one) { return one.id == "other_kernels"; });
  ASSERT_NE(warning, asked.warnings.end());
  EXPECT_EQ(warning->args.at("card"), "NVIDIA T4");
  EXPECT_EQ(warning->args.at("other"), same.name);
}

// The largest that was traced fits, but its upper value is more than the card has.
TEST(TracedAnswer, TellsOfCachedMemoryThatTheLargestTracedBatchGivesBack) {
  TraceWriter out(8);
  out.fact("torch", "2.9.0");
  const Sites sites = write_sites(out);
  out.alloc(64 * k_mib, sites.weight);
  for (int i = 0; i < 3; ++i) {
    out.mark(TraceMark::step_begins);
    for (const uint64_t mib : {512, 600}) out.free(out.alloc(mib * k_mib, sites.act));
    out.mark(TraceMark::step_ends);
  }
  out.end();
  Traces one;
  one.plain.push_back(out.read());
  const uint64_t needs = answered(one, question()).prediction.peak_reserved_upper;
  const auto on = [&](uint64_t room) { return answered(one, question({sized(room)})).cards[0]; };
  EXPECT_EQ(on(needs).largest_retries, 0u);
  EXPECT_EQ(on(needs - k_mib).largest.batch, 8u);
  EXPECT_EQ(on(needs - k_mib).largest_retries, 1u);
  EXPECT_EQ(on(needs).largest_whole, 8u);
  EXPECT_EQ(on(needs - k_mib).largest_whole, 0u);
}

// Two large blocks one after the other, neither of which serves the other's request: the second has
// the first given back where both do not fit.
Traces one_block_after_another(const std::vector<uint64_t>& batches) {
  Traces out;
  for (const uint64_t batch : batches) {
    TraceWriter writer(batch);
    writer.fact("torch", "2.9.0");
    const Sites sites = write_sites(writer);
    for (int i = 0; i < 3; ++i) {
      writer.mark(TraceMark::step_begins);
      for (const uint64_t mib : {32, 40}) writer.free(writer.alloc(batch * mib * k_mib, sites.act));
      writer.mark(TraceMark::step_ends);
    }
    writer.end();
    out.plain.push_back(writer.read());
  }
  return out;
}

TEST(TracedAnswer, TellsTheLargestBatchThatGivesNothingBackFromTheLargestOfAll) {
  const Traces both = one_block_after_another({8, 16});
  const uint64_t room = 2048 * k_mib;
  const Answer got = answered(both, question({sized(room)}));
  const CardAnswer& card = got.cards[0];
  EXPECT_GT(card.largest_retries, 0u);
  EXPECT_LT(card.largest_whole, card.largest.batch);
  EXPECT_LE(predict(got.traced(), card.largest_whole, got.setup)->peak_reserved_upper, room);
  EXPECT_GT(predict(got.traced(), card.largest_whole + 1, got.setup)->peak_reserved_upper, room);
  // The curve shows where the card is full, with no bar that runs over it.
  const auto at = [&](uint64_t batch) {
    return std::any_of(got.curve.begin(), got.curve.end(),
                       [&](const CurvePoint& point) { return point.batch == batch; });
  };
  EXPECT_TRUE(at(card.largest_whole));
  EXPECT_FALSE(at(card.largest.batch));
}

// The point value goes without a retry, the upper value does not.
TEST(TracedAnswer, CountsARetryWhereOnlyTheUpperValueRunsOver) {
  const Traces both = one_block_after_another({8, 16});
  const Answer free = answered(both, question());
  const Prediction at = *predict(free.traced(), 20, free.setup);
  ASSERT_LT(at.peak_reserved, at.peak_reserved_upper);
  const CardAnswer card =
      answered(both, question({sized(at.peak_reserved_upper - k_mib)})).cards[0];
  ASSERT_GE(card.largest.batch, 20u);
  EXPECT_LT(card.largest_whole, 20u);
  EXPECT_GT(card.largest_retries, 0u);
}

Traces of_samples(const char* samples, const char* in_batches_of) {
  Traces out = traces({8, 16});
  for (formats::TraceEvents& events : out.plain) {
    formats::add_fact(events, "samples", samples);
    formats::add_fact(events, "samples_in_batches_of", in_batches_of);
  }
  return out;
}

TEST(TracedAnswer, TellsThatTheDataHasFewerSamplesThanABatch) {
  Question asked = question({sized(1024 * k_mib)});
  const auto says = [&](const Traces& traces, const char* id) {
    return warns(answered(traces, asked).warnings, id);
  };
  const uint64_t largest = answered(traces({8, 16}), asked).cards[0].largest.batch;
  const std::string all = std::to_string(largest), few = std::to_string(largest - 1);
  EXPECT_FALSE(says(of_samples(all.c_str(), "8"), "largest_beyond_samples"));
  EXPECT_TRUE(says(of_samples(few.c_str(), "8"), "largest_beyond_samples"));
  EXPECT_FALSE(says(of_samples(few.c_str(), "8"), "few_samples"));
  EXPECT_TRUE(says(of_samples("7", "8"), "few_samples"));
  // The batch size of the answer is not the DataLoader's: of a global batch it holds a share.
  EXPECT_FALSE(says(of_samples("7", "1"), "few_samples"));
  asked.batch = 12;
  EXPECT_TRUE(says(of_samples("11", "8"), "few_samples"));
  EXPECT_FALSE(says(of_samples("", ""), "few_samples"));
}

TEST(TracedAnswer, FollowsSettingsThatAreAskedFor) {
  EXPECT_EQ(answered(traces({8, 16}), question()).settings, "");
  Question asked = question();
  asked.settings = "expandable_segments:True";
  EXPECT_EQ(answered(traces({8, 16}), asked).settings, "expandable_segments:True");
  asked.settings = "no_such_setting:1";
  const Result<TracedAnswer> wrong = TracedAnswer::begin(traces({8, 16}), asked, tables());
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::usage);
}

TEST(TracedAnswer, NeedsToKnowWhichTorchWasTraced) {
  Traces unknown;
  unknown.plain.push_back(traced_by("", 8).read());
  const Result<TracedAnswer> got = TracedAnswer::begin(std::move(unknown), question(), tables());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::malformed);
}

TEST(TracedAnswer, WithoutTracesForPlansSaysSo) {
  Question asked = question();
  asked.plans = true;
  const Answer got = answered(traces({8, 16}), asked);
  ASSERT_TRUE(got.plans);
  EXPECT_TRUE(got.plans->programs.empty());
  EXPECT_TRUE(warns(got.warnings, "plan_untold"));
  EXPECT_FALSE(answered(traces({8, 16}), question()).plans);
}

// A run beside the program.
Answer calibrated(uint64_t percent, bool ran_out = false) {
  Result<TracedAnswer> answer =
      TracedAnswer::begin(traces({8, 16}), question({sized(1024 * k_mib)}), tables());
  const uint64_t predicted = answered(traces({8, 16}), question()).prediction.peak_reserved;
  MeasuredRun run;
  run.batch = 8;
  run.peak_reserved = predicted / 100 * percent;
  run.ran_out = ran_out;
  EXPECT_TRUE(answer->calibrate(run));
  return std::move(*answer).finish();
}

TEST(Calibration, ScalesWhatIsReserved) {
  const Answer plain = answered(traces({8, 16}), question({sized(1024 * k_mib)}));
  const Answer more = calibrated(110);
  EXPECT_TRUE(warns(more.warnings, "calibrated"));
  const double ratio = static_cast<double>(more.prediction.peak_reserved) /
                       static_cast<double>(plain.prediction.peak_reserved);
  EXPECT_NEAR(ratio, 1.1, 0.001);
  EXPECT_EQ(more.prediction.peak_allocated, plain.prediction.peak_allocated);
  EXPECT_GT(more.prediction.peak_reserved_upper, plain.prediction.peak_reserved_upper);
  EXPECT_GT(more.curve.front().peak_reserved, plain.curve.front().peak_reserved);
  EXPECT_LT(more.cards[0].largest.batch, plain.cards[0].largest.batch);
}

TEST(Calibration, NeverLowersTheUpperValue) {
  const Answer plain = answered(traces({8, 16}), question({sized(1024 * k_mib)}));
  const Answer less = calibrated(90);
  EXPECT_LT(less.prediction.peak_reserved, plain.prediction.peak_reserved);
  EXPECT_EQ(less.prediction.peak_reserved_upper, plain.prediction.peak_reserved_upper);
  EXPECT_EQ(less.cards[0].largest.batch, plain.cards[0].largest.batch);
}

TEST(Calibration, IsNotDoneByARunOfAnotherProgram) {
  const Answer plain = answered(traces({8, 16}), question({sized(1024 * k_mib)}));
  for (const Answer& got : {calibrated(70), calibrated(130), calibrated(110, true)}) {
    EXPECT_TRUE(warns(got.warnings, "not_calibrated"));
    EXPECT_EQ(got.prediction.peak_reserved, plain.prediction.peak_reserved);
  }
}

}  // namespace traced_answer_test
}  // namespace cufit::fit
