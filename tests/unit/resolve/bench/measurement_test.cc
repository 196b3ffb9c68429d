// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/measurement.h"

#include <random>

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace measurement_test {

// Rounds whose blocks take these seconds for 10 calls of 8 items.
BenchRun run_of(const std::vector<double>& seconds) {
  BenchRun run;
  run.loaded.items = 8;
  for (size_t i = 0; i < 24; ++i) {
    formats::BenchBlock block;
    block.calls = 10;
    block.seconds = seconds[i % seconds.size()];
    block.reserved = 100 + i;
    run.blocks.push_back(block);
  }
  return run;
}

TEST(Measurement, RatesAreItemsASecond) {
  BenchCase one;
  one.runs = {run_of({2})};
  judge(one);
  ASSERT_TRUE(one.runs[0].rate);
  EXPECT_EQ(one.runs[0].rate->middle, 40);
  EXPECT_EQ(reserved_bytes(one.runs[0]), 123u);
  EXPECT_TRUE(one.comparisons.empty());
  EXPECT_EQ(fastest_of(one), std::vector<size_t>{0});
}

TEST(Measurement, EachTwoAreComparedOnceAndEitherWay) {
  BenchCase one;
  one.runs = {run_of({2}), run_of({1}), run_of({2})};
  judge(one);
  ASSERT_EQ(one.comparisons.size(), 3u);
  EXPECT_EQ(one.comparisons[0].difference, Difference::faster);
  EXPECT_EQ(one.comparisons[0].ratio.middle, 2);
  EXPECT_EQ(comparison_of(one, 1, 0)->difference, Difference::slower);
  EXPECT_EQ(comparison_of(one, 1, 0)->ratio.middle, 0.5);
  EXPECT_EQ(comparison_of(one, 0, 2)->difference, Difference::none);
  EXPECT_EQ(fastest_of(one), std::vector<size_t>{1});
}

TEST(Measurement, WhatCannotBeToldApartIsFastTogether) {
  BenchCase one;
  one.runs = {run_of({1.0, 1.1, 1.2, 1.05}), run_of({1.1, 1.0, 1.05, 1.2}), run_of({3})};
  judge(one);
  EXPECT_EQ(fastest_of(one).size(), 2u);
}

// Comparisons as they may come out of noise: each {faster, slower}.
BenchCase of_comparisons(size_t runs, const std::vector<std::pair<size_t, size_t>>& beats) {
  BenchCase one;
  for (size_t i = 0; i < runs; ++i) {
    one.runs.push_back(run_of({1}));
    one.runs[i].rate = Interval{100 - static_cast<double>(i), 90, 110};
  }
  for (const auto& [fast, slow] : beats)
    one.comparisons.push_back({slow, fast, {1.02, 1.01, 1.03}, Difference::faster});
  return one;
}

TEST(Measurement, OfACircleNoneIsBeaten) {
  EXPECT_EQ(fastest_of(of_comparisons(3, {{0, 1}, {1, 2}, {2, 0}})),
            (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(fastest_of(of_comparisons(4, {{0, 1}, {1, 2}, {2, 0}, {1, 3}})),
            (std::vector<size_t>{0, 1, 2}));
}

// 0 and 2 could not be told apart, yet 1 is between them.
TEST(Measurement, WhatIsSlowerThanASlowerOneIsSlower) {
  EXPECT_EQ(fastest_of(of_comparisons(3, {{0, 1}, {1, 2}})), std::vector<size_t>{0});
}

// Ten comparisons of five equal environments: each alone at 95 % would be wrong once in three measurements.
TEST(Measurement, OfManyEqualOnesNoneIsTheFastest) {
  std::mt19937_64 chance(3);
  std::lognormal_distribution<double> late(0, 0.8);
  size_t claimed = 0;
  constexpr size_t k_times = 600;
  for (size_t i = 0; i < k_times; ++i) {
    BenchCase one;
    for (size_t side = 0; side < 5; ++side) {
      BenchRun run = run_of({1});
      run.blocks.resize(24, run.blocks[0]);
      for (formats::BenchBlock& block : run.blocks) block.seconds = 1 + 0.02 * late(chance);
      one.runs.push_back(run);
    }
    judge(one);
    ASSERT_EQ(one.comparisons.size(), 10u);
    claimed += fastest_of(one).size() < 5 ? 1 : 0;
  }
  EXPECT_LT(claimed, k_times / 20 + 12);  // 5 %, and two standard errors
}

TEST(Measurement, WhatFailedIsNotCompared) {
  BenchCase one;
  one.runs = {run_of({2}), run_of({1}), run_of({3})};
  one.runs[1].trouble = {"oom", ""};
  judge(one);
  EXPECT_FALSE(one.runs[1].rate);
  ASSERT_EQ(one.comparisons.size(), 1u);
  EXPECT_EQ(one.comparisons[0].other, 2u);
  EXPECT_FALSE(comparison_of(one, 0, 1));
  EXPECT_EQ(fastest_of(one), std::vector<size_t>{0});
}

}  // namespace measurement_test
}  // namespace cufit::resolve
