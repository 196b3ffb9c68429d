// SPDX-License-Identifier: Apache-2.0
#include "fit/step_program.h"

#include <gtest/gtest.h>

#include "fit/exact_size_rule.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace step_program_test {

using Numbers = std::vector<uint64_t>;

SizeRule rule(const Numbers& batches, const Numbers& sizes) {
  return rule_for(batches, sizes).rule;
}

// The size at `batch` of something with these sizes where traced; {0, 0}: cannot be.
std::pair<uint64_t, uint64_t> at(const Numbers& batches, const Numbers& sizes, uint64_t batch) {
  StepProgram program;
  program.batches = batches;
  program.traced_sizes = sizes;
  const Result<SizeAt> got = size_at(program, rule_for(batches, sizes), batch);
  return got ? std::pair(got->point, got->upper) : std::pair<uint64_t, uint64_t>();
}

TEST(Sizes, FollowTheRuleThatTheTracesProve) {
  EXPECT_EQ(rule({4}, {100}), SizeRule::traced);
  EXPECT_EQ(rule({2, 4}, {512, 512}), SizeRule::constant);
  EXPECT_EQ(rule({2, 4}, {2000, 4000}), SizeRule::affine);
  EXPECT_EQ(rule({2, 4}, {2100, 4100}), SizeRule::affine);
  EXPECT_EQ(rule({2, 4, 7}, {2100, 4100, 7100}), SizeRule::affine);
  EXPECT_EQ(rule({2, 4}, {4000, 2000}), SizeRule::affine);  // falls; a third trace would tell
  EXPECT_EQ(rule({2, 4, 8}, {2100, 4100, 8501}), SizeRule::unclear);
  EXPECT_EQ(rule({2, 4}, {16, 64}), SizeRule::quadratic);
  EXPECT_EQ(rule({2, 4, 8}, {2 * 4 + 6, 2 * 16 + 12, 2 * 64 + 24}), SizeRule::quadratic);
  EXPECT_EQ(rule({2, 4}, {14, 44}), SizeRule::unclear);
  // Three points on a line prove it, also where it is below nothing at a batch of none.
  EXPECT_EQ(rule({2, 4, 6}, {100, 300, 500}), SizeRule::affine);
}

TEST(Sizes, AreExactByARule) {
  EXPECT_EQ(at({2, 4}, {2100, 4100}, 1000), (std::pair<uint64_t, uint64_t>(1000100, 1000100)));
  EXPECT_EQ(at({2, 4}, {16, 64}, 100), (std::pair<uint64_t, uint64_t>(40000, 40000)));
  EXPECT_EQ(at({2, 4}, {512, 512}, 77), (std::pair<uint64_t, uint64_t>(512, 512)));
  const uint64_t tib = uint64_t{1} << 40;
  EXPECT_EQ(at({3, 4}, {3 * tib, 4 * tib}, 1000).first, 1000 * tib);
}

TEST(Sizes, ThatCannotBeAreNotAnswered) {
  EXPECT_EQ(at({2, 4}, {4000, 2000}, 7).first, 0u);  // negative
  EXPECT_EQ(at({2, 4}, {2ull << 40, 4ull << 40}, 1u << 20).first, 0u);
  EXPECT_EQ(at({4}, {100}, 5).first, 0u);
  EXPECT_EQ(at({4}, {100}, 4).first, 100u);
  EXPECT_EQ(at({2, 4}, {2, 4}, uint64_t{1} << 60).first, 0u);
}

// Sizes that are rounded up to `g`: exact where traced, elsewhere a bound that holds.
TEST(Sizes, RoundedToAGranularityHaveABoundThatHolds) {
  for (const uint64_t g : {uint64_t{32}, uint64_t{100}, uint64_t{512}})
    for (const uint64_t slope : {uint64_t{7}, uint64_t{33}, uint64_t{501}, uint64_t{4097}})
      for (const uint64_t constant : {uint64_t{0}, uint64_t{5}, uint64_t{1000}}) {
        const auto size = [=](uint64_t batch) {
          return (constant + slope * batch + g - 1) / g * g;
        };
        const Numbers batches = {2, 5, 9}, sizes = {size(2), size(5), size(9)};
        if (rule(batches, sizes) != SizeRule::rounded) continue;
        for (uint64_t batch = 1; batch < 300; ++batch) {
          const auto [point, upper] = at(batches, sizes, batch);
          EXPECT_GE(upper, size(batch)) << g << " " << slope << " " << constant << " " << batch;
          EXPECT_LE(point, upper);
        }
        EXPECT_EQ(at(batches, sizes, 5), std::pair(size(5), size(5)));
      }
  EXPECT_EQ(rule({2, 5, 9}, {512, 1024, 2048}), SizeRule::rounded);
  EXPECT_EQ(rule({3, 5}, {512, 1024 + 511}), SizeRule::unclear);
}

TEST(Sizes, OfNoRuleHaveABoundThatGrowsWithTheSquare) {
  const Numbers batches = {2, 4}, sizes = {14, 44};  // 2 b^2 + 3 b
  for (uint64_t batch = 5; batch < 200; ++batch) {
    const auto [point, upper] = at(batches, sizes, batch);
    EXPECT_GE(upper, 2 * batch * batch + 3 * batch) << batch;
    EXPECT_LE(point, upper);
  }
  EXPECT_EQ(at(batches, sizes, 4), (std::pair<uint64_t, uint64_t>(44, 44)));
}

TEST(Align, MakesOneProgramOfTwoTraces) {
  const StepProgram program = aligned({small_program(4), small_program(2)}).value();
  EXPECT_EQ(program.batches, (Numbers{2, 4}));
  EXPECT_TRUE(program.differences.empty());
  EXPECT_TRUE(program.extrapolates());
  EXPECT_TRUE(program.complete);
  EXPECT_EQ(program.steps, 3u);
  const formats::TraceEvents sixteen = small_program(16).read();
  ASSERT_EQ(program.events.size(), sixteen.events.size());
  const std::vector<SizeAt> sizes = sizes_at(program, 16).value();
  for (size_t i = 0; i < program.events.size(); ++i) {
    if (program.events[i].kind != StepEventKind::alloc) continue;
    EXPECT_EQ(sizes[program.events[i].size].point, sixteen.events[i].bytes) << i;
  }
}

TEST(Align, SaysWhereTracesPartAndExtrapolatesNothing) {
  TraceWriter other(4);
  const Sites s = write_sites(other);
  other.category(other.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
  write_step(other, s, 4, 0, true);
  write_step(other, s, 4, 0, true);  // makes its state anew
  write_step(other, s, 4, 0, false);
  other.end();
  const StepProgram program = aligned({small_program(2), other}).value();
  ASSERT_EQ(program.differences.size(), 1u);
  const Difference& where = program.differences[0];
  EXPECT_EQ(where.what, Difference::What::event);
  EXPECT_EQ(where.trace, 1u);
  EXPECT_EQ(where.batch, 2u);
  EXPECT_EQ(where.other_batch, 4u);
  // They part in what is freed before the state is made; frees have the place of what stands
  // before.
  EXPECT_EQ(where.other_op, "mm");
  EXPECT_EQ(where.other_source, "train.py:12");
  EXPECT_FALSE(program.extrapolates());
  EXPECT_EQ(program.at(3), nullptr);
  ASSERT_NE(program.at(2), nullptr);
  ASSERT_NE(program.at(4), nullptr);
  EXPECT_FALSE(predict(program, 3, {}));
  EXPECT_NE(predict(program, 2, {}).value().peak_allocated,
            predict(program, 4, {}).value().peak_allocated);
}

// The program of fit_fixture.h with validation in batches of 64 behind it: `passes` of them.
TraceWriter validated(uint64_t batch, int passes) {
  TraceWriter out(batch);
  const Sites s = write_sites(out);
  out.category(out.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
  for (int i = 0; i < 3; ++i) write_step(out, s, batch, 0, i == 0);
  out.mark(TraceMark::after_steps);
  const uint32_t site = out.site("relu", TracePhase::validation, "body.1", "train.py:20");
  for (int i = 0; i < passes; ++i) out.free(out.alloc(64 * 4 * k_mib, site));
  out.end();
  return out;
}

TEST(Align, CountsWhatFollowsTheSteps) {
  const StepProgram program = aligned({validated(2, 3), validated(4, 3)}).value();
  EXPECT_FALSE(program.after_steps_left_out);
  EXPECT_EQ(program.steps, 3u);
  const Prediction small = predict(program, 2, {}).value();
  // Weights, optimizer state and one batch of 64.
  EXPECT_EQ(small.peak_allocated, (64 + 64 + 64 * 4) * k_mib + small.breakdown.workspaces);
  EXPECT_EQ(small.peak.phase, TracePhase::validation);
  EXPECT_EQ(small.peak.source, "train.py:20");
  // From a batch on where a step takes more, that is the peak.
  const Prediction large = predict(program, 100, {}).value();
  EXPECT_EQ(large.peak.phase, TracePhase::forward);
  EXPECT_GT(large.peak_allocated, small.peak_allocated);
}

TEST(Align, LeavesOutWhatFollowsTheStepsWhereTracesDiffer) {
  const StepProgram program = aligned({validated(2, 3), validated(4, 2)}).value();
  EXPECT_TRUE(program.after_steps_left_out);
  EXPECT_TRUE(program.differences.empty());
  EXPECT_TRUE(program.extrapolates());
  const StepProgram plain = aligned({small_program(2), small_program(4)}).value();
  const Prediction got = predict(program, 8, {}).value();
  EXPECT_EQ(got.peak_allocated, predict(plain, 8, {}).value().peak_allocated);
  EXPECT_EQ(got.warnings, std::vector<std::string>{"after_steps_left_out"});
  // One of them alone is exact.
  const StepProgram one = aligned({validated(4, 2)}).value();
  EXPECT_EQ(predict(one, 4, {}).value().peak.phase, TracePhase::validation);
  // Steps that differ are no matter of validation.
  const TraceWriter other = small_program(4, 2);
  EXPECT_FALSE(aligned({validated(2, 3), other}).value().differences.empty());
}

TEST(Align, TellsSitesCallsAndLengthsApart) {
  const auto trace = [](uint64_t batch, std::string_view op, size_t numbers, bool more) {
    TraceWriter out(batch);
    const uint32_t site = out.site(op, TracePhase::forward, "", "a.py:1");
    out.alloc(512, site);
    out.call(site, Numbers(numbers, batch));
    if (more) out.alloc(512, site);
    out.end();
    return out;
  };
  const auto what = [&](const TraceWriter& other) {
    return aligned({trace(2, "mm", 3, true), other}).value().differences.at(0).what;
  };
  EXPECT_EQ(what(trace(4, "add", 3, true)), Difference::What::site);
  EXPECT_EQ(what(trace(4, "mm", 4, true)), Difference::What::call);
  EXPECT_EQ(what(trace(4, "mm", 3, false)), Difference::What::length);
  EXPECT_TRUE(aligned({trace(2, "mm", 3, true), trace(4, "mm", 3, true)}).value().extrapolates());
}

TEST(Align, RefusesTracesWithoutABatchSize) {
  EXPECT_FALSE(aligned({}));
  TraceWriter none;
  none.alloc(1, none.site("empty", TracePhase::setup));
  EXPECT_FALSE(aligned({none}));
  EXPECT_FALSE(aligned({TraceWriter(4)}));  // no storage
  EXPECT_FALSE(aligned({small_program(4), small_program(4)}));
  TraceWriter zero = small_program(0);
  EXPECT_FALSE(aligned({zero}));
}

TEST(Align, KeepsNotesOfAllTracesOnce) {
  TraceWriter a = small_program(2, 1), b = small_program(4, 1);
  TraceWriter first(2), second(4);
  for (TraceWriter* out : {&first, &second}) {
    out->alloc(512, out->site("empty", TracePhase::setup));
    out->note("data_dependent", "aten::item", "train.py:60");
  }
  second.note("no_fake_kernel", "my::op", "train.py:61");
  const StepProgram program = aligned({first, second}).value();
  ASSERT_EQ(program.notes.size(), 2u);
  EXPECT_EQ(program.text(program.notes[1].detail), "my::op");
  EXPECT_FALSE(program.complete);
}

}  // namespace step_program_test
}  // namespace cufit::fit
