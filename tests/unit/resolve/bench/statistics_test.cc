// SPDX-License-Identifier: Apache-2.0
// Laws: equal times are no difference, a shift beyond the noise is found, an interval holds the truth as often as it says, a
// drift of the card is none of an environment's.
#include "resolve/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace statistics_test {

struct Simulated {
  std::vector<double> a, b;
};

// Rates of `rounds` rounds, A B then B A, of which B's are `shift` times A's. Noise is skewed, as times are: most blocks near
// the best, some late. `drift`: by which each block is slower than the one before it.
Simulated simulate(std::mt19937_64& chance, size_t rounds, double shift, double noise,
                   double drift = 0) {
  std::lognormal_distribution<double> late(0, 0.8);
  Simulated out;
  double block = 0;
  for (size_t round = 0; round < rounds; ++round) {
    double pair[2];
    for (size_t i = 0; i < 2; ++i) {
      const size_t which = round % 2 == 0 ? i : 1 - i;
      pair[which] =
          (which == 1 ? shift : 1) * std::exp(-noise * late(chance)) * std::exp(-drift * block++);
    }
    out.a.push_back(pair[0]);
    out.b.push_back(pair[1]);
  }
  return out;
}

TEST(Statistics, MedianIsTheMiddle) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
}

// Conover, Practical Nonparametric Statistics: the sign test at 5 %, two-sided.
TEST(Statistics, IntervalIsThatOfTheSignTest) {
  const std::pair<size_t, size_t> k_places[] = {{6, 1}, {8, 1}, {9, 2}, {12, 3}, {20, 6}, {25, 8}};
  for (const auto& [n, k] : k_places) {
    std::vector<double> values(n);
    std::iota(values.begin(), values.end(), 1);
    std::shuffle(values.begin(), values.end(), std::mt19937_64(n));
    const std::optional<Interval> made = median_interval(values);
    ASSERT_TRUE(made) << n;
    EXPECT_EQ(made->low, static_cast<double>(k)) << n;
    EXPECT_EQ(made->high, static_cast<double>(n + 1 - k)) << n;
  }
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}));
  EXPECT_TRUE(median_interval(std::vector<double>(1000, 2)));
}

// 0.025 for one; the smallest part of 2^-n, and k, by hand.
TEST(Statistics, IntervalsThatHoldTogetherAreWider) {
  std::vector<double> values(12);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(median_interval(values, 1)->low, 3);
  EXPECT_EQ(median_interval(values, 3)->low, 2);   // 0.0032 and 0.0193 around 0.0083
  EXPECT_EQ(median_interval(values, 45)->low, 1);  // 0.00024 and 0.0032 around 0.00056
  EXPECT_FALSE(median_interval(values, 120));      // 0.00024 above 0.00021
  EXPECT_EQ(comparisons_of(1), 1u);
  EXPECT_EQ(comparisons_of(5), 10u);
  EXPECT_EQ(rounds_for(1), 12u);
  EXPECT_EQ(rounds_for(2), 12u);
  EXPECT_EQ(rounds_for(3), 14u);
  EXPECT_EQ(rounds_for(16), 26u);
}

TEST(Statistics, EqualTimesAreNoDifference) {
  const std::vector<double> same(24, 17.5);
  const std::optional<Interval> ratio = ratio_interval(same, same);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->low, 1);
  EXPECT_EQ(ratio->high, 1);
  EXPECT_EQ(difference_of(*ratio), Difference::none);
}

TEST(Statistics, TooFewRoundsAreNoAnswer) {
  EXPECT_FALSE(ratio_interval(std::vector<double>(11, 1), std::vector<double>(11, 2)));
  EXPECT_TRUE(ratio_interval(std::vector<double>(12, 1), std::vector<double>(12, 2)));
  EXPECT_FALSE(ratio_interval(std::vector<double>(12, 0), std::vector<double>(12, 2)));
}

// One that is found by chance alone would be of either sign.
TEST(Statistics, AShiftOfFivePercentIsFoundInNoiseOfOne) {
  std::mt19937_64 chance(7);
  size_t found = 0;
  for (int i = 0; i < 200; ++i) {
    const Simulated one = simulate(chance, 24, 1.05, 0.01);
    const Difference there = difference_of(*ratio_interval(one.a, one.b));
    const Difference back = difference_of(*ratio_interval(one.b, one.a));
    found += there == Difference::faster && back == Difference::slower ? 1 : 0;
  }
  EXPECT_EQ(found, 200u);
}

TEST(Statistics, TheIntervalHoldsTheTruthInNinetyFiveOfAHundred) {
  std::mt19937_64 chance(11);
  for (const double drift : {0.0, 0.002}) {
    size_t holds = 0, claimed = 0;
    constexpr size_t k_cases = 4000;
    for (size_t i = 0; i < k_cases; ++i) {
      const Simulated one = simulate(chance, 24, 1.02, 0.02, drift);
      const Interval ratio = *ratio_interval(one.a, one.b);
      holds += ratio.low <= 1.02 && 1.02 <= ratio.high ? 1 : 0;
      const Simulated same = simulate(chance, 24, 1, 0.02, drift);
      claimed += difference_of(*ratio_interval(same.a, same.b)) != Difference::none ? 1 : 0;
    }
    // Twelve ratios, the third and the tenth: 96.1 %. Four standard errors are 1.2 %.
    EXPECT_NEAR(static_cast<double>(holds) / k_cases, 0.961, 0.0125) << drift;
    EXPECT_NEAR(static_cast<double>(claimed) / k_cases, 0.039, 0.0125) << drift;
  }
}

TEST(Statistics, WarmUpEndsWhenNothingMoves) {
  EXPECT_FALSE(is_steady({1, 1, 1, 1, 1}));
  EXPECT_TRUE(is_steady({5, 1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(is_steady({1.0, 1.1, 0.9, 1.05, 0.95, 1.2}));    // noise
  EXPECT_FALSE(is_steady({2.0, 1.9, 1.8, 1.7, 1.6, 1.5}));     // still getting faster
  EXPECT_FALSE(is_steady({1.0, 1.02, 1.04, 1.06, 1.1, 1.2}));  // slower: it heats up
  EXPECT_TRUE(is_steady({2.0, 1.9, 1.8, 1.0, 1.0, 1.0, 1.005, 1.005, 1.005}));
}

}  // namespace statistics_test
}  // namespace cufit::resolve
