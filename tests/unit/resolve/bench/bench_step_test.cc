// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/bench_step.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace bench_step_test {

using Kind = BenchStep::Kind;

// Two environments with torches of their own on a GPU; each case has the ratio of the second to the first.
BenchMeasurement measured(const std::vector<Interval>& ratios) {
  BenchMeasurement out;
  for (const char* torch : {"2.8.0+cu126", "2.8.0+cu128"}) {
    out.environments.emplace_back();
    out.environments.back().hello.torch = torch;
    out.environments.back().hello.gpu.emplace();
  }
  for (const Interval& ratio : ratios) {
    BenchCase one;
    one.workload = "resnet50";
    one.runs.resize(2);
    one.runs[1].environment = 1;
    for (BenchRun& run : one.runs) run.rate = Interval{100, 99, 101};
    one.comparisons.push_back({0, 1, ratio, difference_of(ratio)});
    out.cases.push_back(one);
  }
  return out;
}

constexpr Interval k_faster{1.03, 1.02, 1.04}, k_slower{0.97, 0.96, 0.98}, k_same{1, 0.99, 1.01},
    k_unsure{1.01, 0.9, 1.1};

TEST(BenchStep, FasterSomewhereAndSlowerNowhereIsUsed) {
  for (const auto& ratios : {std::vector<Interval>{k_faster},
                             {k_faster, k_same},
                             {k_same, k_faster},
                             {k_faster, k_faster}}) {
    const BenchStep step = next_step(measured(ratios), false);
    EXPECT_EQ(step.kind, Kind::use);
    EXPECT_EQ(step.environment, 1u);
  }
  EXPECT_EQ(next_step(measured({k_slower}), false).environment, 0u);
  EXPECT_EQ(next_step(measured({k_faster, k_slower}), false).kind, Kind::depends);
}

TEST(BenchStep, NoiseThatHidesMuchAsksForMoreTime) {
  EXPECT_EQ(next_step(measured({k_same}), false).kind, Kind::none);
  const BenchStep step = next_step(measured({k_unsure}), false);
  EXPECT_EQ(step.kind, Kind::longer);
  EXPECT_NEAR(step.hidden, 0.111, 0.001);  // 1 / 0.9
}

// One that crashes is no reason to say that speed is none.
TEST(BenchStep, OneThatFailsIsLookedAt) {
  BenchMeasurement result = measured({k_same});
  result.cases[0].comparisons.clear();
  BenchRun& second = result.cases[0].runs[1];
  second.rate.reset();
  for (const char* kind : {"died", "hung", "failed", "garbage"}) {
    second.trouble = {kind, "signal 11"};
    const BenchStep step = next_step(result, true);
    EXPECT_EQ(step.kind, Kind::doctor) << kind;
    EXPECT_EQ(step.environment, 1u);
  }
  second.trouble = {"oom", ""};
  EXPECT_EQ(next_step(result, true).kind, Kind::smaller_batch);
  second.trouble = {"precision", "bf16"};
  EXPECT_EQ(next_step(result, true).kind, Kind::other);
}

TEST(BenchStep, AFileThatFailsEverywhereIsMended) {
  BenchMeasurement result = measured({k_same});
  result.cases[0].workload = "work.py";
  for (BenchRun& run : result.cases[0].runs) run.trouble = {"failed", "NameError"};
  EXPECT_EQ(next_step(result, false).kind, Kind::mend_file);
  result.cases[0].runs[0].trouble = {};
  EXPECT_EQ(next_step(result, false).kind, Kind::doctor);
}

// What resolve does not read is not given to it.
TEST(BenchStep, AFileRanksTwoWheelsOfAGpu) {
  BenchMeasurement result = measured({k_faster});
  EXPECT_EQ(next_step(result, true).kind, Kind::rank);
  result.environments[0].hello.torch = result.environments[1].hello.torch;
  EXPECT_EQ(next_step(result, true).kind, Kind::use);
  result = measured({k_faster});
  for (BenchEnvironment& env : result.environments) env.hello.gpu.reset();
  EXPECT_EQ(next_step(result, true).kind, Kind::use);
}

TEST(BenchStep, PrecisionsOfOneEnvironmentHaveAWinner) {
  BenchMeasurement result = measured({k_faster});
  result.environments.pop_back();
  result.cases[0].runs[0].precision = "fp32";
  result.cases[0].runs[1].precision = "bf16";
  result.cases[0].runs[1].environment = 0;
  const BenchStep step = next_step(result, false);
  EXPECT_EQ(step.kind, Kind::use_precision);
  EXPECT_EQ(step.precision, "bf16");
  result.cases[0].comparisons.clear();
  EXPECT_EQ(next_step(result, false).kind, Kind::other);
}

}  // namespace bench_step_test
}  // namespace cufit::resolve
