// SPDX-License-Identifier: Apache-2.0
// One recording and two against a program whose sizes are known at every batch size.
#include "fit/recorded_program.h"

#include <gtest/gtest.h>

#include "support/places.h"

#include "fit_fixture.h"

namespace cufit::fit {
namespace recorded_program_test {

using formats::BatchGrowth;

struct Recording {
  formats::TraceEvents events;
  std::vector<BatchGrowth> growth;
  Recorded view() const { return {&events, growth, false}; }
};

// Of small_program(): 64 MiB of weights, 64 of state, 64 of gradients; per sample 1 MiB of input, 2
// that is kept, 3 that is not.
Recording small_recording(uint64_t batch) {
  Recording out{small_program(batch).read(), {}};
  for (const formats::StorageCategory category : out.events.categories)
    out.growth.push_back(category == StorageCategory::unknown || category == StorageCategory::input
                             ? BatchGrowth::grows
                             : BatchGrowth::fixed);
  return out;
}

Setup setup() {
  Setup out;
  out.version = memory::version_profile(2, 11);
  return out;
}

// What tracing the program itself predicts.
Prediction traced(uint64_t batch) {
  const Result<StepProgram> program = aligned({small_program(8), small_program(16)});
  return *predict(*program, batch, setup());
}

TEST(RecordedProgram, AnswersItsOwnBatchSizeAsTheTraceDoes) {
  const Recording recording = small_recording(8);
  const Result<RecordedPrograms> programs = recorded_programs(std::vector{recording.view()});
  ASSERT_TRUE(programs) << programs.error().text();
  const Result<Prediction> got = predict(*programs, 8, setup());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->peak_reserved, traced(8).peak_reserved);
  EXPECT_EQ(*lowest_reserved(*programs, 8, setup()), traced(8).peak_allocated);
  EXPECT_TRUE(got->traced);
}

TEST(RecordedProgram, OneRecordingGivesARangeThatHoldsTheTruth) {
  const Recording recording = small_recording(8);
  const Result<RecordedPrograms> programs = recorded_programs(std::vector{recording.view()});
  ASSERT_TRUE(programs);
  for (const uint64_t batch : {1, 3, 8, 12, 31, 64}) {
    const Result<Prediction> got = predict(*programs, batch, setup());
    ASSERT_TRUE(got) << batch;
    EXPECT_EQ(got->peak_allocated, traced(batch).peak_allocated) << batch;
    EXPECT_LE(*lowest_reserved(*programs, batch, setup()), traced(batch).peak_reserved) << batch;
    EXPECT_GE(got->peak_reserved_upper, traced(batch).peak_reserved) << batch;
  }
  // Nothing proves that less is needed below the recorded batch size.
  EXPECT_GE(predict(*programs, 1, setup())->peak_reserved_upper, traced(8).peak_reserved);
}

TEST(RecordedProgram, WhatStaysIsDoubtedInTheUpperValueAlone) {
  Recording recording = small_recording(8);
  for (BatchGrowth& growth : recording.growth)
    if (growth == BatchGrowth::grows) growth = BatchGrowth::stays;
  const Result<RecordedPrograms> programs = recorded_programs(std::vector{recording.view()});
  ASSERT_TRUE(programs);
  const Result<Prediction> got = predict(*programs, 64, setup());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->peak_reserved, traced(8).peak_reserved);
  EXPECT_GE(got->peak_reserved_upper, traced(64).peak_reserved);
}

TEST(RecordedProgram, TwoRecordingsProveEverySize) {
  const Recording small = small_recording(4), large = small_recording(8);
  const Result<RecordedPrograms> programs =
      recorded_programs(std::vector{large.view(), small.view()});
  ASSERT_TRUE(programs) << programs.error().text();
  EXPECT_EQ(programs->base, 8u);
  EXPECT_EQ(programs->proved, programs->storages);
  EXPECT_EQ(programs->only_other, 0u);
  for (const uint64_t batch : {1, 6, 64}) {
    const Result<Prediction> got = predict(*programs, batch, setup());
    ASSERT_TRUE(got) << batch;
    EXPECT_EQ(got->peak_reserved, traced(batch).peak_reserved) << batch;
    EXPECT_EQ(*lowest_reserved(*programs, batch, setup()), traced(batch).peak_allocated) << batch;
    EXPECT_LT(got->peak_reserved_upper, traced(batch).peak_reserved + (uint64_t{1} << 28)) << batch;
  }
}

// What cuDNN asks for at one batch size and not at another.
TEST(RecordedProgram, WhatOnlyTheOtherRecordingHasIsAddedToTheUpperValue) {
  const auto with_workspace = [](uint64_t batch, uint64_t mib) {
    TraceWriter out(batch);
    const Sites s = write_sites(out);
    const uint32_t weight = out.alloc(64 * k_mib, s.weight);
    for (int i = 0; i < 3; ++i) {
      if (mib != 0 && i == 0) out.free(out.alloc(mib * k_mib, s.matmul));
      write_step(out, s, batch, weight, i == 0);
    }
    out.end();
    Recording recording{out.read(), {}};
    recording.growth.assign(recording.events.storage_count(), BatchGrowth::stays);
    return recording;
  };
  const Recording small = with_workspace(4, 40), large = with_workspace(8, 0);
  const Result<RecordedPrograms> programs =
      recorded_programs(std::vector{small.view(), large.view()});
  ASSERT_TRUE(programs) << programs.error().text();
  EXPECT_EQ(programs->only_other, 40 * k_mib);
  EXPECT_EQ(programs->proved, programs->storages);
  const Recording plain = with_workspace(4, 0);
  const Result<RecordedPrograms> without =
      recorded_programs(std::vector{plain.view(), large.view()});
  ASSERT_TRUE(without);
  EXPECT_EQ(predict(*programs, 8, setup())->peak_reserved_upper,
            predict(*without, 8, setup())->peak_reserved_upper + 40 * k_mib);
}

TEST(RecordedProgram, WhatTheReplayMissesIsAddedToTheUpperValue) {
  const Recording recording = small_recording(8);
  Result<RecordedPrograms> programs = recorded_programs(std::vector{recording.view()});
  ASSERT_TRUE(programs);
  const uint64_t before = predict(*programs, 8, setup())->peak_reserved_upper;
  const uint64_t far = predict(*programs, 20, setup())->peak_reserved_upper;
  const uint64_t replayed = traced(8).peak_reserved;
  EXPECT_EQ(*compare_with_recording(*programs, replayed, setup()), replayed);
  EXPECT_EQ(predict(*programs, 8, setup())->peak_reserved_upper, before);
  EXPECT_EQ(*compare_with_recording(*programs, replayed + 100 * k_mib, setup()), replayed);
  EXPECT_EQ(predict(*programs, 8, setup())->peak_reserved_upper, before + 100 * k_mib);
  EXPECT_EQ(predict(*programs, 4, setup())->peak_reserved_upper, before + 100 * k_mib);
  EXPECT_EQ(predict(*programs, 20, setup())->peak_reserved_upper, far + 300 * k_mib);
}

TEST(RecordedProgram, RefusesRecordingsOfDifferentPrograms) {
  const Recording small = small_recording(4);
  TraceWriter out(8);
  const uint32_t site = out.site("mm", TracePhase::forward, "other", "other.py:1");
  for (int i = 0; i < 3; ++i) {
    out.mark(TraceMark::step_begins);
    for (int k = 0; k < 9; ++k) out.free(out.alloc((k + 1) * 7 * k_mib, site));
    out.mark(TraceMark::step_ends);
  }
  out.end();
  Recording other{out.read(), {}};
  other.growth.assign(other.events.storage_count(), BatchGrowth::stays);
  const Result<RecordedPrograms> programs =
      recorded_programs(std::vector{small.view(), other.view()});
  ASSERT_FALSE(programs);
  EXPECT_EQ(programs.error().code, Code::unsupported);
}

TEST(RecordedProgram, LargestBatchGoesByTheUpperValue) {
  const Recording small = small_recording(4), large = small_recording(8);
  const Result<RecordedPrograms> two = recorded_programs(std::vector{small.view(), large.view()});
  const Result<RecordedPrograms> one = recorded_programs(std::vector{large.view()});
  ASSERT_TRUE(two && one);
  fit::Setup bounded = setup();
  bounded.capacity = 1000 * k_mib;
  const LargestBatch with_two = largest_batch(*two, bounded);
  const LargestBatch with_one = largest_batch(*one, bounded);
  EXPECT_GT(with_two.batch, 64u);
  EXPECT_LE(with_one.batch, with_two.batch);
  EXPECT_TRUE(predict(*two, with_two.batch, bounded)->fits());
  EXPECT_FALSE(predict(*two, with_two.batch + 1, bounded)->fits());
  // Batch 8 does not fit; that batch 4 does, only two recordings prove.
  bounded.capacity = predict(*two, 4, setup())->peak_reserved_upper + k_mib;
  EXPECT_EQ(largest_batch(*one, bounded).batch, 0u);
  EXPECT_GE(largest_batch(*two, bounded).batch, 4u);
  EXPECT_LT(largest_batch(*two, bounded).batch, 8u);
}

}  // namespace recorded_program_test
}  // namespace cufit::fit
