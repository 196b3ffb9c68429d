// SPDX-License-Identifier: Apache-2.0
// What differs before the steps and behind them does not part traces whose steps are alike.
#include <gtest/gtest.h>

#include "fit/step_program.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace steps_alone_test {

// The program of fit_fixture.h, before which texts are encoded in batches, `loops` of them: what a
// batch takes comes and goes, and what it gives lives until the next, or on, with the last.
TraceWriter cached(uint64_t batch, int loops, uint64_t encoder_mib, bool lives_on = false,
                   uint64_t rest = 0) {
  TraceWriter out(batch);
  const Sites s = write_sites(out);
  const uint32_t encoder = out.site("empty", TracePhase::setup, "encoder", "train.py:4");
  const uint32_t encoded = out.site("mm", TracePhase::setup, "encoder", "cache.py:7");
  const uint32_t held = out.alloc(encoder_mib * k_mib, encoder);
  uint32_t last = 0;
  for (int i = 0; i < loops; ++i) {
    const uint64_t samples = rest != 0 && i + 1 == loops ? rest : batch;
    out.call(encoded, {32, 0, 1, samples, 1024, 1024});
    out.free(out.alloc(4 * samples * k_mib, encoded));
    const uint32_t given = out.alloc(samples * k_mib, encoded);
    if (i != 0) out.free(last);
    last = given;
  }
  if (!lives_on) out.free(last);
  out.free(held);
  out.category(out.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
  for (int i = 0; i < 3; ++i) write_step(out, s, batch, 0, i == 0);
  out.end();
  return out;
}

uint64_t allocated(const StepProgram& program, uint64_t batch) {
  return predict(program, batch, {}).value().peak_allocated;
}

TEST(StepsAlone, WhatComesAndGoesBeforeThemDoesNotPartTraces) {
  for (const bool lives_on : {false, true}) {
    const StepProgram program =
        aligned({cached(6, 2, 32, lives_on), cached(12, 1, 32, lives_on)}).value();
    EXPECT_TRUE(program.differences.empty()) << lives_on;
    EXPECT_TRUE(program.setup_left_out);
    EXPECT_TRUE(program.extrapolates());
    // As if it did that once, whatever the batch size.
    const StepProgram once =
        aligned({cached(6, 1, 32, lives_on), cached(12, 1, 32, lives_on)}).value();
    EXPECT_FALSE(once.setup_left_out);
    for (const uint64_t batch : {6, 9, 12, 40})
      EXPECT_EQ(allocated(program, batch), allocated(once, batch)) << batch;
    EXPECT_EQ(predict(program, 9, {}).value().warnings, std::vector<std::string>{"setup_left_out"});
    EXPECT_TRUE(predict(program, 6, {}).value().warnings.empty());  // all of its own trace
  }
}

// Of 40 texts the last four: at twice the batch size in the place of a whole batch.
TEST(StepsAlone, TheRestOfALoopBeforeThemGrowsOfNothing) {
  const StepProgram program =
      aligned({cached(6, 7, 32, false, 4), cached(12, 4, 32, false, 4)}).value();
  EXPECT_TRUE(program.setup_left_out);
  EXPECT_TRUE(sizes_at(program, 1000));
  EXPECT_GT(allocated(program, 1000), allocated(program, 500));
}

// The encoder takes more than the steps: at every batch size.
TEST(StepsAlone, APeakBeforeThemIsKept) {
  StepProgram program = aligned({cached(6, 2, 4096), cached(12, 1, 4096)}).value();
  measure_left_out(program, {});
  for (const uint64_t batch : {1, 6, 9, 12})
    EXPECT_GE(allocated(program, batch), 4096 * k_mib) << batch;
}

// With a buffer of 9.5 MiB, before which one trace frees 22: the rest of that block, 12.5 MiB, serves
// the input of 12.
TraceWriter buffered(uint64_t batch, bool frees) {
  TraceWriter out(batch);
  const Sites s = write_sites(out);
  if (frees) out.free(out.alloc(22 * k_mib, s.data));
  out.category(out.alloc(19 * k_mib / 2, s.weight), StorageCategory::parameter);
  for (int i = 0; i < 3; ++i) write_step(out, s, batch, 0, i == 0);
  out.end();
  return out;
}

// That is no peak before the steps, and the other batch size takes what its own trace takes.
TEST(StepsAlone, ABlockThatServesTheStepsIsNoPeakBeforeThem) {
  StepProgram program = aligned({buffered(6, false), buffered(12, true)}).value();
  ASSERT_TRUE(program.setup_left_out);
  const StepProgram neither = aligned({buffered(6, false), buffered(12, false)}).value();
  ASSERT_GT(allocated(program, 12), allocated(neither, 12));
  measure_left_out(program, {});
  for (const uint64_t batch : {3, 6}) EXPECT_EQ(allocated(program, batch), allocated(neither, batch));
}

// Weights that threads read, in the order in which they come to it.
TraceWriter read_by_threads(uint64_t batch, std::vector<uint64_t> mib, bool marked = false) {
  TraceWriter out(batch);
  if (marked) out.mark(TraceMark::step_ends);
  const Sites s = write_sites(out);
  for (const uint64_t size : mib)
    out.category(out.alloc(size * k_mib, s.weight), StorageCategory::parameter);
  for (int i = 0; i < 3; ++i) write_step(out, s, batch, 0, i == 0);
  out.end();
  return out;
}

TEST(StepsAlone, WeightsThatThreadsReadDoNotGrowWithTheBatch) {
  const StepProgram mixed =
      aligned({read_by_threads(6, {64, 2, 512, 8}), read_by_threads(12, {2, 512, 8, 64})}).value();
  const StepProgram alike =
      aligned({read_by_threads(6, {64, 2, 512, 8}), read_by_threads(12, {64, 2, 512, 8})}).value();
  EXPECT_TRUE(mixed.differences.empty());
  EXPECT_TRUE(mixed.extrapolates());
  for (const uint64_t batch : {1, 6, 9, 12, 100})
    EXPECT_EQ(allocated(mixed, batch), allocated(alike, batch)) << batch;
}

// No tracer writes it: a file may.
TEST(StepsAlone, AMarkInFrontOfWeightsDoesNotMixThem) {
  const StepProgram marked = aligned({read_by_threads(6, {64, 2, 512, 8}, true),
                                      read_by_threads(12, {2, 512, 8, 64}, true)})
                                 .value();
  const StepProgram plain =
      aligned({read_by_threads(6, {64, 2, 512, 8}), read_by_threads(12, {2, 512, 8, 64})}).value();
  for (const uint64_t batch : {1, 6, 9, 12, 100})
    EXPECT_EQ(allocated(marked, batch), allocated(plain, batch)) << batch;
}

TEST(StepsAlone, StepsThatDifferPartTraces) {
  TraceWriter other(12);
  const Sites s = write_sites(other);
  other.alloc(64 * k_mib, s.weight);
  for (int i = 0; i < 3; ++i) write_step(other, s, 12, 0, true);
  other.end();
  EXPECT_FALSE(aligned({cached(6, 2, 32), other}).value().differences.empty());
}

// Validation of which the trace at the larger batch saw a part only, for all batch sizes.
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

TEST(StepsAlone, WhatOneTraceSawBehindThemIsKeptForItsBatchSize) {
  StepProgram program = aligned({validated(2, 3), validated(4, 0)}).value();
  EXPECT_TRUE(program.after_steps_left_out);
  const Prediction own = predict(program, 2, {}).value();
  EXPECT_EQ(own.peak.phase, TracePhase::validation);
  EXPECT_TRUE(own.warnings.empty());
  // And for others, where it takes more than their steps.
  measure_left_out(program, {});
  for (const uint64_t batch : {1, 3, 4})
    EXPECT_EQ(allocated(program, batch), own.peak_allocated) << batch;
  EXPECT_GT(allocated(program, 100), own.peak_allocated);
  fit::Setup small;
  small.capacity = own.peak_allocated - k_mib;
  EXPECT_FALSE(predict(program, 1, small).value().fits());
}

TEST(StepsAlone, ALargerBatchThatWouldTakeLessIsNotBelieved) {
  // At batch 12 each step had 4 samples, the rest of an epoch.
  TraceWriter rest(12);
  const Sites s = write_sites(rest);
  rest.category(rest.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
  for (int i = 0; i < 3; ++i) write_step(rest, s, 4, 0, i == 0);
  rest.end();
  const StepProgram program = aligned({small_program(6), rest}).value();
  ASSERT_EQ(program.differences.size(), 1u);
  EXPECT_EQ(program.differences[0].what, Difference::What::falls);
  EXPECT_FALSE(program.extrapolates());
  EXPECT_EQ(program.at(1), nullptr);
  ASSERT_NE(program.at(6), nullptr);
  EXPECT_GT(allocated(program, 6), allocated(program, 12));
}

}  // namespace steps_alone_test
}  // namespace cufit::fit
