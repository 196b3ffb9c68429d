// SPDX-License-Identifier: Apache-2.0
// Real recordings at two batch sizes against what the same programs took at four
// (tests/traces/pairs, tests/gpu/record_pairs.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "memory/analysis/recorded_trace.h"
#include "base/bytes.h"
#include "fit/recorded_program.h"
#include "support/places.h"

namespace cufit {
namespace recorded_pairs_test {

struct Measured {
  uint64_t batch, allocated, reserved;
};
struct Pair {
  const char* name;
  Measured runs[4];         // the first two are recorded
  double reserved_percent;  // by which two recordings may miss
};

const Pair k_pairs[] = {
    {"gpt2",
     {{4, 2262861824, 2491416576},
      {8, 3460180992, 3655335936},
      {16, 5866513408, 6050283520},
      {32, 10657620992, 11712593920}},
     0.01},
    {"bert",
     {{4, 1555093504, 1828716544},
      {8, 2078437376, 2285895680},
      {16, 3126091776, 3844079616},
      {32, 5217591296, 6215958528}},
     0.01},
    {"lstm",
     {{8, 471083008, 585105408},
      {16, 556803584, 599785472},
      {32, 725952512, 851443712},
      {64, 1066673664, 1340080128}},
     0.01},
    // cuDNN takes other algorithms at other batch sizes.
    {"resnet50",
     {{8, 1143072768, 1272971264},
      {16, 1829955584, 2025848832},
      {32, 3182946816, 3720347648},
      {64, 5961803776, 7065305088}},
     5},
};

struct Opened {
  analysis::RecordedTrace trace;
  fit::Setup setup;
  fit::Recorded view() const { return {&trace.events, trace.growth, trace.has_workspaces}; }
};

Opened open(const Pair& pair, size_t which) {
  const std::string path = cufit::test::source_dir() + "/tests/traces/pairs/" + pair.name + "-" +
                           std::to_string(pair.runs[which].batch) + ".pkl.gz";
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const Result<memory::Snapshot> snapshot =
      memory::read_snapshot(std::make_shared<MemorySource>(path, bytes.str()));
  EXPECT_TRUE(snapshot) << path;
  const Result<memory::VerifiedRecording> verified =
      memory::verify_recording(*snapshot, 0, std::nullopt);
  Result<analysis::RecordedTrace> trace =
      analysis::recorded_trace(*snapshot, *verified, pair.runs[which].batch);
  EXPECT_TRUE(trace) << path;
  Opened out{std::move(*trace), {}};
  out.setup.version = verified->recording.version;
  out.setup.settings = verified->recording.settings;
  return out;
}

double apart(uint64_t got, uint64_t truth) {
  return std::abs(static_cast<double>(got) - static_cast<double>(truth)) /
         static_cast<double>(truth) * 100;
}

TEST(RecordedPairs, TwoRecordingsTellTheOtherBatchSizes) {
  for (const Pair& pair : k_pairs) {
    const Opened small = open(pair, 0), large = open(pair, 1);
    const Result<fit::RecordedPrograms> programs =
        fit::recorded_programs(std::vector{small.view(), large.view()});
    ASSERT_TRUE(programs) << pair.name;
    for (const Measured& run : pair.runs) {
      SCOPED_TRACE(std::string(pair.name) + " at " + std::to_string(run.batch));
      const Result<fit::Prediction> got = fit::predict(*programs, run.batch, large.setup);
      ASSERT_TRUE(got);
      EXPECT_GE(got->peak_reserved_upper, run.reserved);
      EXPECT_LE(*fit::lowest_reserved(*programs, run.batch, large.setup), run.reserved);
      if (run.batch < programs->base) continue;
      EXPECT_LT(apart(got->peak_allocated, run.allocated), 0.5);
      EXPECT_LT(apart(got->peak_reserved, run.reserved), pair.reserved_percent);
    }
  }
}

TEST(RecordedPairs, OneRecordingGivesARangeThatHoldsTheOthers) {
  for (const Pair& pair : k_pairs)
    for (const size_t which : {0, 1}) {
      const Opened one = open(pair, which);
      const Result<fit::RecordedPrograms> programs =
          fit::recorded_programs(std::vector{one.view()});
      ASSERT_TRUE(programs) << pair.name;
      for (const Measured& run : pair.runs) {
        SCOPED_TRACE(std::string(pair.name) + " from " + std::to_string(programs->base) + " to " +
                     std::to_string(run.batch));
        const Result<fit::Prediction> got = fit::predict(*programs, run.batch, one.setup);
        ASSERT_TRUE(got);
        EXPECT_GE(got->peak_reserved_upper, run.reserved);
        EXPECT_LE(*fit::lowest_reserved(*programs, run.batch, one.setup), run.reserved);
        if (run.batch != programs->base) continue;
        EXPECT_EQ(got->peak_allocated, run.allocated);
        EXPECT_EQ(got->peak_reserved, run.reserved);
      }
    }
}

TEST(RecordedPairs, RecordingsOfDifferentProgramsAreRefused) {
  const Opened one = open(k_pairs[0], 0), other = open(k_pairs[3], 1);
  const Result<fit::RecordedPrograms> programs =
      fit::recorded_programs(std::vector{one.view(), other.view()});
  ASSERT_FALSE(programs);
  EXPECT_EQ(programs.error().code, Code::unsupported);
}

}  // namespace recorded_pairs_test
}  // namespace cufit
