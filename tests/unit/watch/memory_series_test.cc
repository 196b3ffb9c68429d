// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "unit/watch/memory_runs.h"
#include "watch/memory_series.h"

namespace cufit::watch {
namespace {

TEST(MemorySeries, DaysFitIntoAFewHundredPoints) {
  MemorySeries series;
  test::Dice dice(5);
  uint64_t least = UINT64_MAX, most = 0;
  size_t largest = 0;
  constexpr int k_seconds = 4 * 24 * 3600;
  for (int second = 0; second < k_seconds; ++second) {
    const uint64_t bytes = 1000 + dice.next() % 1000000;
    least = std::min(least, bytes);
    most = std::max(most, bytes);
    series.add(second, bytes);
    largest = std::max(largest, series.size());
  }
  EXPECT_LE(largest, 24u * 13 + 1);
  EXPECT_EQ(series.samples(), static_cast<uint64_t>(k_seconds));
  const std::vector<MemoryPoint> points = series.points();
  ASSERT_EQ(points.size(), series.size());
  uint64_t kept_least = UINT64_MAX, kept_most = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_LE(points[i].begin, points[i].end);
    if (i > 0) {
      EXPECT_EQ(points[i].begin, points[i - 1].end + 1) << "no sample is lost or moved";
    }
    kept_least = std::min(kept_least, points[i].min);
    kept_most = std::max(kept_most, points[i].max);
  }
  EXPECT_EQ(points.front().begin, 0);
  EXPECT_EQ(kept_least, least);
  EXPECT_EQ(kept_most, most);
}

TEST(MemorySeries, AnIntervalIsShortBesideItsAge) {
  MemorySeries series;
  for (int second = 0; second < 50000; ++second) series.add(second, 1);
  for (const MemoryPoint& point : series.points())
    EXPECT_LE(point.end - point.begin, std::max(1.0, (series.end() - point.end) / 8));
}

TEST(MemorySeries, WhatIsRecentIsThereAsItCame) {
  MemorySeries series;
  for (int i = 0; i < 1000; ++i) series.add(15.0 * i, static_cast<uint64_t>(i));
  const std::vector<MemoryPoint> points = series.points();
  for (size_t i = 0; i < 20; ++i) {
    const MemoryPoint& point = points[points.size() - 1 - i];
    EXPECT_EQ(point.begin, point.end);
    EXPECT_EQ(point.last, 999 - i);
  }
  EXPECT_EQ(series.last_bytes(), 999u);
  EXPECT_EQ(series.begin(), 0);
}

TEST(MemorySeries, FrequentSamplesShareAPoint) {
  MemorySeries series;
  for (int i = 0; i < 100; ++i) series.add(i / 100.0, static_cast<uint64_t>(i));
  EXPECT_LE(series.size(), 2u);
  EXPECT_EQ(series.points().front().min, 0u);
  EXPECT_EQ(series.points().back().max, 99u);
}

TEST(MemorySeries, AClockThatIsSetBeginsItAnew) {
  MemorySeries series;
  series.add(1000, 7);
  series.add(1000, 8);  // at the same moment
  series.add(990, 9);   // a little earlier
  series.add(std::numeric_limits<double>::quiet_NaN(), 9);
  EXPECT_EQ(series.samples(), 1u);
  EXPECT_EQ(series.last_bytes(), 7u);
  series.add(100, 5);
  EXPECT_EQ(series.samples(), 1u);
  EXPECT_EQ(series.begin(), 100);
  EXPECT_EQ(series.last_bytes(), 5u);
}

}  // namespace
}  // namespace cufit::watch
