// SPDX-License-Identifier: Apache-2.0
// Laws of memory_trend, and the states by which it begins and ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "unit/watch/foresight_judge.h"
#include "watch/memory_trend.h"

namespace cufit::watch {
namespace {

using State = MemoryTrend::State;
using test::k_gib;
using test::k_mib;

MemorySeries series_of(double seconds, double every, const std::function<double(double)>& gib_at) {
  MemorySeries series;
  for (double time = 0; time <= seconds; time += every)
    series.add(time, static_cast<uint64_t>(gib_at(time) * static_cast<double>(k_gib)));
  return series;
}

double leak_of_100_mib_per_s(double time) { return time < 10 ? 0.5 : 12 + time / 10; }

TEST(MemoryTrend, ALeakIsNamedWithItsRate) {
  const MemoryTrend trend = memory_trend(series_of(300, 1, leak_of_100_mib_per_s), 38 * k_gib);
  ASSERT_EQ(trend.state, State::growing);
  EXPECT_NEAR(*trend.slope_bytes_per_s, 0.1 * static_cast<double>(k_gib), 1e6);
  EXPECT_NEAR(*trend.full_in_s, 380, 5);
  EXPECT_LE(*trend.full_in_s_early, *trend.full_in_s);
  EXPECT_GE(*trend.full_in_s_late, *trend.full_in_s);
  EXPECT_LT(*trend.full_in_s_late - *trend.full_in_s_early, 200);
}

TEST(MemoryTrend, NothingIsNamedInTheFirstTwoMinutes) {
  EXPECT_EQ(memory_trend(MemorySeries(), 0).state, State::too_short);
  const MemoryTrend trend = memory_trend(series_of(115, 1, leak_of_100_mib_per_s), 10 * k_gib);
  EXPECT_EQ(trend.state, State::too_short);
  EXPECT_FALSE(trend.slope_bytes_per_s || trend.full_in_s);
  // Nor from eight samples, however far apart.
  EXPECT_EQ(memory_trend(series_of(7 * 60, 60, leak_of_100_mib_per_s), 10 * k_gib).state,
            State::too_short);
}

TEST(MemoryTrend, WhatStaysIsSteady) {
  const MemoryTrend trend =
      memory_trend(series_of(3600, 15, [](double time) { return time < 60 ? 1.0 : 20.0; }), k_gib);
  EXPECT_EQ(trend.state, State::steady);
  EXPECT_EQ(trend.slope_bytes_per_s, 0.0);
  EXPECT_FALSE(trend.full_in_s);
}

TEST(MemoryTrend, AStepIsNoGrowth) {
  const MemoryTrend trend = memory_trend(
      series_of(3600, 1, [](double time) { return time < 3000 ? 20.0 : 60.0; }), k_gib);
  EXPECT_EQ(trend.state, State::stepping);
  EXPECT_FALSE(trend.slope_bytes_per_s || trend.full_in_s);
}

TEST(MemoryTrend, AGrowthThatEndedIsNone) {
  EXPECT_NE(
      memory_trend(series_of(2400, 1, [](double time) { return 12 + std::min(time, 1200.0) / 60; }),
                   2 * k_gib)
          .state,
      State::growing);
}

TEST(MemoryTrend, StairsAreNamedAsLongAsTheyGoOn) {
  const auto stairs = [](double time) { return 10 + 3 * std::floor(std::min(time, 1399.0) / 200); };
  const MemoryTrend going = memory_trend(series_of(1300, 5, stairs), 20 * k_gib);
  ASSERT_EQ(going.state, State::growing);
  // Six more fit; the next comes in 100 s, and the one that does not fit 1200 s after it.
  EXPECT_NEAR(*going.full_in_s, 1300, 100);
  EXPECT_LE(*going.full_in_s_early, 1300);
  EXPECT_GE(*going.full_in_s_late, 1300);
  EXPECT_NE(memory_trend(series_of(1600, 5, stairs), 4 * k_gib).state, State::growing);
}

TEST(MemoryTrend, ALeakThatBeginsLateIsSeen) {
  const auto late = [](double time) { return 30 + std::max(0.0, time - 20000) / 10; };
  const MemoryTrend trend = memory_trend(series_of(20200, 1, late), 30 * k_gib);
  ASSERT_EQ(trend.state, State::growing);
  EXPECT_GE(*trend.grows_since, 19950);
  EXPECT_NEAR(*trend.full_in_s, 300, 40);
}

// A tooth rises to its tip no higher than the one before.
TEST(MemoryTrend, ASawIsNoGrowth) {
  for (double seconds = 2000; seconds < 4000; seconds += 50)
    EXPECT_NE(memory_trend(
                  series_of(seconds, 2, [](double time) { return 12 + std::fmod(time, 900) / 90; }),
                  4 * k_gib)
                  .state,
              State::growing)
        << seconds;
}

// Heights that vary set records, but what lies below them does not rise.
TEST(MemoryTrend, PeaksThatGrowOverAFloorThatStaysAreNone) {
  const auto peaks = [](double time) {
    return std::fmod(time, 100) < 50 ? 12.0 : 14 + std::floor(time / 100) * 0.5;
  };
  EXPECT_NE(memory_trend(series_of(3000, 2, peaks), 4 * k_gib).state, State::growing);
}

// Half of what is still missing each ten minutes.
TEST(MemoryTrend, GrowthThatSaturatesBeforeTheCardIsFullIsNone) {
  for (double seconds = 200; seconds < 4000; seconds += 100)
    EXPECT_NE(
        memory_trend(series_of(seconds, 1,
                               [](double time) { return 20 + 20 * (1 - std::exp2(-time / 600)); }),
                     45 * k_gib)
            .state,
        State::growing)
        << seconds;
}

// Half of what is still missing each fifty minutes: seen in the midst of it, this is nearly a line. Where all of it fits and
// 25 GiB more, there is no alarm, and where half of what is to come does not fit, there is.
TEST(MemoryTrend, ACacheThatFillsEverMoreSlowlyIsNamedOnlyWhereItDoesNotFit) {
  const auto cache = [](double time) { return 20 + 20 * (1 - std::exp2(-time / 3000)); };
  const auto gib = [](double count) {
    return static_cast<uint64_t>(count * static_cast<double>(k_gib));
  };
  size_t looks = 0, named = 0;
  for (double seconds = 1900; seconds < 9000; seconds += 100) {
    const double to_come = 40 - cache(seconds);
    const MemorySeries series = series_of(seconds, 1, cache);
    EXPECT_NE(memory_trend(series, gib(to_come + 25)).state, State::growing) << seconds;
    named += memory_trend(series, gib(to_come + 5)).state == State::growing;
    ++looks;
  }
  EXPECT_LT(named * 10, looks);  // a false alarm with 5 GiB to spare: src/watch/README.md
  const double to_come = 40 - cache(3000);
  EXPECT_EQ(memory_trend(series_of(3000, 1, cache), gib(to_come / 2)).state, State::growing);
}

// The same rate is a model on its way to the card where it was there from the first sample.
TEST(MemoryTrend, GrowthFromTheFirstSampleIsNamedLater) {
  const auto loading = [](double time) { return 0.5 + time / 10; };
  EXPECT_NE(memory_trend(series_of(300, 1, loading), 50 * k_gib).state, State::growing);
  EXPECT_EQ(memory_trend(series_of(300, 1, leak_of_100_mib_per_s), 50 * k_gib).state,
            State::growing);
  EXPECT_EQ(memory_trend(series_of(400, 1, loading), 39 * k_gib).state, State::growing);
}

TEST(MemoryTrend, TheWayLeftDecidesHowSoonItIsNamed) {
  const MemorySeries series = series_of(300, 1, leak_of_100_mib_per_s);
  bool was_growing = true;
  for (uint64_t free = 1; free < 400; free += 3) {  // once too far away, it stays so
    const bool growing = memory_trend(series, free * k_gib).state == State::growing;
    EXPECT_TRUE(was_growing || !growing) << free;
    was_growing = growing;
  }
  EXPECT_FALSE(was_growing);
}

struct Shape {
  const char* name;
  std::function<double(double)> gib_at;
};

const Shape k_shapes[] = {
    {"leak", leak_of_100_mib_per_s},
    {"stairs", [](double time) { return 10 + std::floor(time / 200) * 3; }},
    {"steady", [](double time) { return time < 30 ? 2.0 : 30.0; }},
    {"logarithm", [](double time) { return 10 + 3 * std::log(1 + time); }},
};

TEST(MemoryTrend, ShiftsInTimeAndBytesChangeNothing) {
  for (const Shape& shape : k_shapes) {
    MemorySeries here, there;
    for (int time = 0; time <= 1100; ++time) {
      const uint64_t bytes = static_cast<uint64_t>(shape.gib_at(time) * 1024) * k_mib;
      here.add(time, bytes);
      there.add(time + 1700000000.0, bytes + 7 * k_gib);
      const MemoryTrend a = memory_trend(here, 30 * k_gib), b = memory_trend(there, 30 * k_gib);
      ASSERT_EQ(a.state, b.state) << shape.name << " at " << time;
      ASSERT_EQ(a.slope_bytes_per_s.has_value(), b.slope_bytes_per_s.has_value());
      if (!a.full_in_s) continue;
      ASSERT_NEAR(*a.full_in_s, *b.full_in_s, 1e-3) << shape.name;
    }
  }
}

TEST(MemoryTrend, ScaledBytesScaleTheSlopeAlone) {
  for (const Shape& shape : k_shapes)
    for (const double times : {0.125, 3.0}) {
      const auto scaled = [&](double time) { return shape.gib_at(time) * times; };
      const MemoryTrend a = memory_trend(series_of(1100, 1, shape.gib_at), 16 * k_gib);
      const MemoryTrend b =
          memory_trend(series_of(1100, 1, scaled),
                       static_cast<uint64_t>(16 * times * static_cast<double>(k_gib)));
      ASSERT_EQ(a.state, b.state) << shape.name;
      if (!a.full_in_s) continue;
      EXPECT_NEAR(*b.slope_bytes_per_s / *a.slope_bytes_per_s, times, 1e-4) << shape.name;
      EXPECT_NEAR(*a.full_in_s, *b.full_in_s, 0.1) << shape.name;
    }
}

}  // namespace
}  // namespace cufit::watch
