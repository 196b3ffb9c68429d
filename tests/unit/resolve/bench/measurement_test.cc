// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/measurement.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace measurement_test {

// Rounds whose blocks take these seconds for 10 calls of 8 items.
BenchRun run_of(const std::vector<double>& seconds) {
  BenchRun run;
  run.loaded.items = 8;
  for (size_t i = 0; i < 12; ++i) {
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
  EXPECT_EQ(reserved_bytes(one.runs[0]), 111u);
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
