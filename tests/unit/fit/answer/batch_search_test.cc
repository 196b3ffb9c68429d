// SPDX-License-Identifier: Apache-2.0
// The largest batch size that fits, found by traces alone.
#include "fit/answer/batch_search.h"

#include <gtest/gtest.h>

#include <functional>

namespace cufit::fit {
namespace batch_search_test {

CurvePoint point(uint64_t batch, uint64_t bytes, uint64_t capacity) {
  return {batch, bytes, bytes, bytes, bytes <= capacity};
}

// The size that is found when each that is asked for is traced.
uint64_t search(const std::function<uint64_t(uint64_t)>& bytes, uint64_t first, uint64_t capacity) {
  std::vector<CurvePoint> points{point(first, bytes(first), capacity),
                                 point(2 * first, bytes(2 * first), capacity)};
  for (size_t i = 0; i < k_most_traces_more; ++i) {
    const std::optional<uint64_t> next = next_batch(points, capacity);
    if (!next) break;
    for (const CurvePoint& known : points) EXPECT_NE(known.batch, *next);
    points.push_back(point(*next, bytes(*next), capacity));
    std::sort(points.begin(), points.end(),
              [](const CurvePoint& a, const CurvePoint& b) { return a.batch < b.batch; });
  }
  uint64_t out = 0;
  for (const CurvePoint& one : points)
    if (one.fits) out = std::max(out, one.batch);
  return out;
}

TEST(BatchSearch, FindsTheLargestOfALine) {
  const auto line = [](uint64_t batch) { return 1000 + 100 * batch; };
  EXPECT_NEAR(double(search(line, 8, 5000)), 40, 4);     // beyond both
  EXPECT_NEAR(double(search(line, 32, 5000)), 40, 4);    // between them
  EXPECT_NEAR(double(search(line, 32, 2500)), 15, 2);    // below both
  EXPECT_EQ(search(line, 64, 1050), 0u);                 // none fits
}

TEST(BatchSearch, GoesNoFurtherThanFourTimesWhatWasTraced) {
  const CurvePoint points[] = {point(8, 1000, 1 << 20), point(16, 1010, 1 << 20)};
  EXPECT_EQ(next_batch(points, 1 << 20), 64u);
}

TEST(BatchSearch, FindsTheLargestOfAStair) {
  const auto stair = [](uint64_t batch) { return batch / 16 * 2000 + 500; };
  const uint64_t found = search(stair, 8, 6600);
  EXPECT_LE(stair(found), 6600u);
  EXPECT_GE(found, 40u);
}

// Where the line says less than what fits already, one sample more would tell nothing.
TEST(BatchSearch, TakesStepsThatTell) {
  const CurvePoint points[] = {point(128, 3000, 7000), point(225, 6900, 7000), point(256, 8000, 7000)};
  EXPECT_EQ(next_batch(points, 7000), 243u);
}

TEST(BatchSearch, GoesOnWhereALargerBatchTookNoMore) {
  const CurvePoint falling[] = {point(8, 1000, 5000), point(16, 900, 5000)};
  EXPECT_EQ(next_batch(falling, 5000), 32u);
}

TEST(BatchSearch, AsksForNothingWhereNothingCanBeTold) {
  const CurvePoint one[] = {point(8, 1000, 5000)};
  EXPECT_FALSE(next_batch(one, 5000));
  const CurvePoint near[] = {point(30, 4900, 5000), point(32, 5100, 5000)};
  EXPECT_FALSE(next_batch(near, 5000));
  const CurvePoint turned[] = {point(8, 6000, 5000), point(16, 4000, 5000)};
  EXPECT_FALSE(next_batch(turned, 5000));
}

TEST(BatchSearch, LeavesTracesThatGrowTooLong) {
  const TraceLength flat[] = {{8, 50000}, {16, 50000}}, rising[] = {{8, 30000}, {16, 60000}};
  EXPECT_TRUE(worth_its_work(1000, flat));
  EXPECT_TRUE(worth_its_work(64, rising));
  EXPECT_FALSE(worth_its_work(256, rising));
  // The last that was traced need not be the largest.
  const TraceLength back[] = {{64, 240000}, {128, 380000}, {32, 120000}};
  EXPECT_FALSE(worth_its_work(200, back));
}

}  // namespace batch_search_test
}  // namespace cufit::fit
