// SPDX-License-Identifier: Apache-2.0
// The reservation of 800 MiB and an eighth is 900 MiB: 45 pages of 20 MiB.
#include "memory/allocator/expandable_segment.h"

#include "unit/memory/allocator/allocator_fixture.h"

namespace cufit::memory {
namespace expandable_segment_test {

constexpr const char* k_on = "expandable_segments:True";

TEST(Expandable, GrowsByPagesAtItsEnd) {
  Bench bench(k_on);
  EXPECT_EQ(bench.at(bench.get(5 * k_mib)), 0u);
  EXPECT_EQ(bench.at(bench.get(30 * k_mib)), 5 * k_mib);  // 15 free and mapped, 15 more: a page
  EXPECT_EQ(bench.at(bench.get(3 * k_mib)), 35 * k_mib);
  EXPECT_EQ(bench.calls(), "m 0 20 m 20 20");
  EXPECT_EQ(bench.reserved(), 40 * k_mib);
  EXPECT_EQ(bench.allocator.stats().segments.peak, 0u);
  // The small pool has a reservation of its own, with pages of 2 MiB.
  EXPECT_EQ(bench.at(bench.get(1)), 900 * k_mib);
  EXPECT_EQ(bench.calls(), "m 0 20 m 20 20 m 900 2");
}

TEST(Expandable, SplitsFrom512BytesAlsoInTheLargePool) {
  Bench bench(k_on);
  const BlockHandle a = bench.get(20 * k_mib - 512);
  EXPECT_EQ(bench.allocator.block(a).size, 20 * k_mib - 512);
}

TEST(Expandable, PrefersAHoleToTheGrowingEnd) {
  Bench bench(k_on);
  const BlockHandle hole = bench.get(12 * k_mib);
  bench.get(20 * k_mib);  // 12..32; 32..40 is free and can grow
  bench.allocator.free(hole);
  EXPECT_EQ(bench.at(bench.get(4 * k_mib)), 0u);
}

TEST(Expandable, ReleaseUnmapsWholePagesInside) {
  Bench bench(k_on);
  bench.get(5 * k_mib);
  const BlockHandle middle = bench.get(60 * k_mib);  // 5..65
  bench.get(5 * k_mib);                              // 65..70 of 80 mapped
  bench.allocator.free(middle);
  EXPECT_EQ(bench.allocator.releasable(), 40 * k_mib);
  bench.allocator.empty_cache();
  EXPECT_EQ(bench.calls(), "m 0 20 m 20 60 u 20 40");
  EXPECT_EQ(bench.reserved(), 40 * k_mib);
  // 5..20, the unmapped 20..60 and 60..65 hold it again: mapped from the start of the gap.
  EXPECT_EQ(bench.at(bench.get(30 * k_mib)), 5 * k_mib);
  EXPECT_EQ(bench.calls(), "m 0 20 m 20 60 u 20 40 m 20 20");
}

TEST(Expandable, AnEmptySegmentGoesAltogether) {
  Bench bench(k_on);
  bench.allocator.free(bench.get(5 * k_mib));
  bench.allocator.empty_cache();
  EXPECT_EQ(bench.reserved(), 0u);
  bench.get(5 * k_mib);
  EXPECT_EQ(bench.calls(), "m 0 20 u 0 20 m 900 20");
}

TEST(Expandable, PagesMappedBeforeAFailureStay) {
  Bench bench(k_on, 0, 60 * k_mib);
  bench.get(15 * k_mib);
  EXPECT_FALSE(bench.get(80 * k_mib));
  EXPECT_EQ(bench.reserved(), 20 * k_mib);  // one call maps all missing pages or none
  EXPECT_EQ(bench.allocator.stats().num_alloc_retries, 1u);
  EXPECT_TRUE(bench.get(45 * k_mib));
  EXPECT_EQ(bench.reserved(), 60 * k_mib);
}

TEST(Expandable, TheLimitCountsTheSegmentThatWouldHaveBeen) {
  Bench bench(k_on, 42 * k_mib);
  bench.get(15 * k_mib);
  // 24 asked: 5 are there, 20 more would do; but 20 + 24 is above the limit of 42.
  EXPECT_FALSE(bench.get(24 * k_mib));
  EXPECT_TRUE(bench.get(21 * k_mib));
}

TEST(Expandable, OversizeRulesStillApply) {
  Bench bench("expandable_segments:True,max_split_size_mb:40");
  bench.allocator.free(bench.get(60 * k_mib));
  EXPECT_EQ(bench.at(bench.get(10 * k_mib)), 0u);  // missed, then found as a candidate to grow
  EXPECT_EQ(bench.calls(), "m 0 60");
}

TEST(Expandable, MoreThanTheReservationFails) {
  Bench bench(k_on);
  EXPECT_FALSE(bench.get(1000 * k_mib));
}

}  // namespace expandable_segment_test
}  // namespace cufit::memory
