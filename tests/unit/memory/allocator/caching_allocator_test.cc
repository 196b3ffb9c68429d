// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/caching_allocator.h"

#include "unit/memory/allocator/allocator_fixture.h"

namespace cufit::memory {
namespace caching_allocator_test {

TEST(BestFit, SmallestBlockThenLowestAddress) {
  Bench bench;
  const BlockHandle a = bench.get(12 * k_mib);  // segments 0..12, 12..24, 24..40
  const BlockHandle b = bench.get(12 * k_mib);
  const BlockHandle c = bench.get(16 * k_mib);
  bench.allocator.free(c);
  bench.allocator.free(b);
  bench.allocator.free(a);
  EXPECT_EQ(bench.at(bench.get(11 * k_mib + k_mib / 2)), 0u);
  EXPECT_EQ(bench.at(bench.get(12 * k_mib)), 12 * k_mib);
  EXPECT_EQ(bench.at(bench.get(12 * k_mib)), 24 * k_mib);
  EXPECT_EQ(bench.calls(), "a 0 12 a 12 12 a 24 16");
}

TEST(BestFit, StreamsAndPoolsDoNotShare) {
  Bench bench;
  bench.allocator.free(bench.get(3 * k_mib, 1));
  bench.get(3 * k_mib, 2);
  bench.get(k_mib, 1);
  EXPECT_EQ(bench.calls(), "a 0 20 a 20 20 a 40 2");
}

TEST(Split, FrontIsHandedOutAndRestServesTheNext) {
  Bench bench;
  EXPECT_EQ(bench.at(bench.get(3 * k_mib)), 0u);
  EXPECT_EQ(bench.at(bench.get(5 * k_mib)), 3 * k_mib);
  EXPECT_EQ(bench.at(bench.get(600)), 20 * k_mib);
  EXPECT_EQ(bench.at(bench.get(1)), 20 * k_mib + 1024);
  EXPECT_EQ(bench.allocator.stats().requested_bytes.current, 8 * k_mib + 601);
}

TEST(Split, LargeRestOfAtMostOneMibStays) {
  Bench bench;
  bench.allocator.free(bench.get(12 * k_mib));
  const BlockHandle handle = bench.get(11 * k_mib);
  EXPECT_EQ(bench.allocator.block(handle).size, 12 * k_mib);
  EXPECT_EQ(bench.allocator.stats().allocated_bytes.current, 12 * k_mib);
  bench.allocator.free(handle);
  EXPECT_EQ(bench.allocator.block(bench.get(11 * k_mib - 512)).size, 11 * k_mib - 512);
}

TEST(Merge, NeighboursBecomeOneBlockAgain) {
  Bench bench;
  const BlockHandle a = bench.get(4 * k_mib), b = bench.get(4 * k_mib), c = bench.get(4 * k_mib);
  bench.allocator.free(a);
  bench.allocator.free(c);
  bench.allocator.free(b);
  const std::vector<SegmentView> segments = bench.allocator.segments();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].blocks.size(), 1u);
  EXPECT_EQ(bench.allocator.releasable(), 20 * k_mib);
}

TEST(Oversize, BoundsOfReuse) {
  Bench bench("max_split_size_mb:32,max_non_split_rounding_mb:20");
  const BlockHandle big = bench.get(60 * k_mib);
  bench.allocator.free(big);
  bench.get(30 * k_mib);  // below max_split: may not take the 60
  bench.get(40 * k_mib);  // 60 is not below 40 + 20
  EXPECT_EQ(bench.calls(), "a 0 60 a 60 30 a 90 40");
  const BlockHandle same = bench.get(41 * k_mib);  // 60 is, and is not split
  EXPECT_EQ(bench.at(same), 0u);
  EXPECT_EQ(bench.allocator.block(same).size, 60 * k_mib);
}

TEST(Retry, LimitReleasesCachedSegmentsInSetOrder) {
  Bench bench("", 50 * k_mib);
  const BlockHandle a = bench.get(20 * k_mib), b = bench.get(12 * k_mib), c = bench.get(1);
  const BlockHandle other = bench.get(10 * k_mib, 5);
  bench.allocator.free(a);
  bench.allocator.free(b);
  bench.allocator.free(c);
  bench.allocator.free(other);
  EXPECT_TRUE(bench.get(30 * k_mib));
  // Large pool by size, then the other stream, then the small pool.
  EXPECT_EQ(bench.calls(), "a 0 20 a 20 12 a 32 2 a 34 10 f 20 12 f 0 20 f 34 10 f 32 2 a 44 30");
  EXPECT_EQ(bench.allocator.stats().num_alloc_retries, 1u);
  EXPECT_EQ(bench.allocator.stats().reserved_bytes.peak, 44 * k_mib);
}

TEST(Retry, OversizeBlocksAreReleasedFirst) {
  Bench bench("max_split_size_mb:32", 200 * k_mib);
  for (uint64_t size : {40, 50, 60, 30}) bench.get(size * k_mib);
  std::vector<BlockHandle> all;
  for (const SegmentView& segment : bench.allocator.segments())
    all.push_back(segment.blocks[0].handle);
  for (const BlockHandle& handle : all) bench.allocator.free(handle);
  bench.log.clear();
  // 180 held; 35 more than 20: one block of at least 35 goes, the 40, and the next try succeeds.
  EXPECT_TRUE(bench.get(k_mib * 100));  // no block of 100: the largest ones, 60 + 50, suffice
  EXPECT_EQ(bench.calls(), "f 90 60 f 40 50 a 180 100");
  EXPECT_EQ(bench.allocator.stats().num_alloc_retries, 0u);
}

TEST(OutOfMemory, SaysWhatWasTriedAndWhatWasFree) {
  Bench bench("", 40 * k_mib);
  bench.get(3 * k_mib);
  const BlockHandle b = bench.get(9 * k_mib);
  bench.get(2 * k_mib);
  bench.allocator.free(b);
  bench.allocator.set_event(17);
  EXPECT_FALSE(bench.get(21 * k_mib + 1));
  const OutOfMemory& oom = bench.allocator.last_oom();
  EXPECT_EQ(oom.event, 17u);
  EXPECT_EQ(oom.requested, 21 * k_mib + 1);
  EXPECT_EQ(oom.rounded, 21 * k_mib + 512);
  EXPECT_EQ(oom.tried, 22 * k_mib);
  EXPECT_EQ(oom.allocated, 5 * k_mib);
  EXPECT_EQ(oom.reserved, 20 * k_mib);
  EXPECT_EQ(oom.largest_free_in_pool, 9 * k_mib);
  EXPECT_FALSE(oom.cached_block_would_do);
  EXPECT_EQ(bench.allocator.stats().num_ooms, 1u);
}

TEST(OutOfMemory, CapacityOfTheDevice) {
  Bench bench("", 0, 30 * k_mib);
  bench.get(20 * k_mib);
  EXPECT_FALSE(bench.get(12 * k_mib));
  EXPECT_TRUE(bench.get(10 * k_mib));
  EXPECT_FALSE(bench.get(UINT64_MAX));
  EXPECT_TRUE(bench.allocator.last_oom().rejected);
}

TEST(OutOfMemory, ThePoolIsNotSearchedAgain) {
  Bench bench("", 24 * k_mib);
  const BlockHandle a = bench.get(20 * k_mib);
  const BlockHandle rest = bench.get(1);  // 2 MiB of the small pool
  (void)rest;
  // 16 of the 20 are freed but wait; the other part keeps the segment from being released.
  bench.allocator.free(a);
  const BlockHandle low = bench.get(4 * k_mib), high = bench.get(16 * k_mib);
  (void)low;
  bench.allocator.free_requested(high);
  EXPECT_FALSE(bench.get(16 * k_mib));
  EXPECT_TRUE(bench.allocator.last_oom().cached_block_would_do);
  EXPECT_TRUE(bench.get(16 * k_mib));
}

TEST(OutOfMemory, RejectedBeforeAnythingIsReleased) {
  Bench bench("throw_on_cudamalloc_oom:True", 24 * k_mib);
  bench.allocator.free(bench.get(20 * k_mib));
  EXPECT_FALSE(bench.get(22 * k_mib));
  EXPECT_EQ(bench.calls(), "a 0 20");
  EXPECT_EQ(bench.allocator.stats().num_oom_rejections, 1u);
  EXPECT_EQ(bench.allocator.stats().num_alloc_retries, 0u);
}

TEST(Fraction, OfTotalMemoryAndOneIsNoLimitLater) {
  const auto survives = [](const char* settings, uint32_t minor) {
    return static_cast<bool>(Bench(settings, 0, 0, minor).get(900 * k_mib));
  };
  EXPECT_FALSE(survives("per_process_memory_fraction:1.0", 11));  // of 800 MiB
  EXPECT_TRUE(survives("per_process_memory_fraction:1.0", 13));
  EXPECT_FALSE(survives("per_process_memory_fraction:0.99", 13));
}

TEST(PendingFree, ActiveUntilCompleted) {
  Bench bench;
  const BlockHandle a = bench.get(3 * k_mib);
  bench.allocator.record_stream(a, bench.allocator.stream(0));  // its own: ignored
  bench.allocator.record_stream(a, bench.allocator.stream(4));
  bench.allocator.free(a);
  EXPECT_EQ(bench.allocator.stats().allocated_bytes.current, 0u);
  EXPECT_EQ(bench.allocator.stats().active_bytes.current, 3 * k_mib);
  EXPECT_EQ(bench.at(bench.get(3 * k_mib)), 3 * k_mib);
  bench.allocator.free_completed(a);
  EXPECT_EQ(bench.allocator.stats().active_bytes.current, 3 * k_mib);
  EXPECT_EQ(bench.at(bench.get(3 * k_mib)), 0u);
  bench.allocator.free_completed(a);  // a second time, and the slot lives again: nothing happens
  EXPECT_EQ(bench.allocator.stats().allocated_bytes.current, 6 * k_mib);
}

TEST(GarbageCollection, OldSegmentsGoFirst) {
  // Threshold 0.5 of 80 MiB: from 40 held on.
  Bench bench("garbage_collection_threshold:0.5", 80 * k_mib);
  const BlockHandle a = bench.get(20 * k_mib);  // large-pool call 1
  const BlockHandle b = bench.get(22 * k_mib);  // 2
  bench.allocator.free(a);                      // base 2
  bench.get(30 * k_mib);                        // call 3; 42 held: a (age 1) is the only one, goes
  EXPECT_EQ(bench.calls(), "a 0 20 a 20 22 f 0 20 a 42 30");
  bench.allocator.free(b);                      // base 3
  const BlockHandle c = bench.get(10 * k_mib);  // 4: from b; 12 left over
  bench.allocator.free(c);                      // base 4
  bench.get(24 * k_mib);                        // call 5; 52 held, target 12: b's segment, age 1
  EXPECT_EQ(bench.calls(), "a 0 20 a 20 22 f 0 20 a 42 30 f 20 22 a 72 24");
}

TEST(GarbageCollection, NothingWithoutALimit) {
  Bench bench("garbage_collection_threshold:0.1");
  for (uint64_t size = 20; size < 60; size += 4) bench.allocator.free(bench.get(size * k_mib));
  EXPECT_EQ(bench.allocator.stats().cuda_frees, 0u);
}

}  // namespace caching_allocator_test
}  // namespace cufit::memory
