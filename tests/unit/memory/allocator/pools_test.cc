// SPDX-License-Identifier: Apache-2.0
// Private pools, and memory that plays a recording back.
#include "unit/memory/allocator/allocator_fixture.h"

namespace cufit::memory {
namespace pools_test {

TEST(PrivatePool, HasItsOwnSegmentsUntilReleased) {
  Bench bench;
  bench.allocator.free(bench.get(12 * k_mib));
  const uint32_t graph = bench.allocator.create_pool({});
  bench.allocator.begin_allocate_to_pool(graph, std::nullopt, true);
  const BlockHandle inside = bench.get(12 * k_mib);
  bench.allocator.end_allocate_to_pool(graph);
  EXPECT_EQ(bench.at(inside), 12 * k_mib);
  EXPECT_EQ(bench.at(bench.get(12 * k_mib)), 0u);
  bench.allocator.free(inside);
  bench.allocator.empty_cache();  // the graph lives: its segment stays
  EXPECT_EQ(bench.reserved(), 24 * k_mib);
  bench.allocator.release_pool(graph);
  bench.allocator.empty_cache();
  EXPECT_EQ(bench.calls(), "a 0 12 a 12 12 f 12 12");
}

TEST(PrivatePool, OnlyTheStreamOfTheFilter) {
  Bench bench;
  const uint32_t pool = bench.allocator.create_pool({});
  bench.allocator.begin_allocate_to_pool(pool, bench.allocator.stream(8), true);
  EXPECT_EQ(bench.allocator.block(bench.get(1, 8)).pool->owner, pool);
  EXPECT_EQ(bench.allocator.block(bench.get(1, 9)).pool->owner, 0u);
}

TEST(PrivatePool, WhichOfTwoIsAskedFirst) {
  for (const uint32_t minor : {8u, 9u}) {
    Bench bench("", 0, 0, minor);
    const uint32_t older = bench.allocator.create_pool({}), newer = bench.allocator.create_pool({});
    bench.allocator.begin_allocate_to_pool(older, std::nullopt, true);
    bench.allocator.begin_allocate_to_pool(newer, std::nullopt, true);
    EXPECT_EQ(bench.allocator.block(bench.get(1)).pool->owner, minor == 8 ? older : newer);
  }
}

TEST(PrivatePool, CapturesForbidToRelease) {
  const auto retries = [](bool is_capture, uint32_t minor) {
    Bench bench("", 30 * k_mib, 0, minor);
    bench.allocator.free(bench.get(20 * k_mib));
    bench.allocator.begin_allocate_to_pool(bench.allocator.create_pool({}), std::nullopt,
                                           is_capture);
    const bool found = static_cast<bool>(bench.get(22 * k_mib));
    EXPECT_EQ(found, bench.allocator.stats().num_alloc_retries == 1);
    return bench.allocator.stats().num_alloc_retries;
  };
  EXPECT_EQ(retries(true, 13), 0u);
  EXPECT_EQ(retries(false, 13), 1u);
  EXPECT_EQ(retries(false, 12), 0u);  // to 2.12 a MemPool in use did too
}

TEST(PrivatePool, OwnAllocatorIsNeverExpandable) {
  Bench bench("expandable_segments:True");
  PoolOptions options;
  options.own_allocator = true;
  const uint32_t pool = bench.allocator.create_pool(options);
  bench.allocator.malloc_in_pool(5 * k_mib, 0, pool);
  EXPECT_EQ(bench.calls(), "a 0 20");
}

TEST(PrivatePool, NoSplit) {
  Bench bench;
  PoolOptions options;
  options.no_split = true;
  const BlockHandle handle =
      bench.allocator.malloc_in_pool(5 * k_mib, 0, bench.allocator.create_pool(options));
  EXPECT_EQ(bench.allocator.block(handle).size, 20 * k_mib);
}

TEST(PrivatePool, FallbackOnOutOfMemoryPerVersion) {
  const auto calls = [](uint32_t minor) {
    Bench bench("", 44 * k_mib, 0, minor);
    PoolOptions options;
    options.use_on_oom = true;
    const uint32_t pool = bench.allocator.create_pool(options);
    bench.allocator.retain_pool(pool);
    bench.allocator.free(bench.allocator.malloc_in_pool(22 * k_mib, 0, pool));
    bench.allocator.free(bench.get(20 * k_mib));
    const BlockHandle handle = bench.get(22 * k_mib);
    return bench.calls() +
           (handle ? " pool " + std::to_string(bench.allocator.block(handle).pool->owner) : " oom");
  };
  EXPECT_EQ(calls(6), "a 0 22 a 22 20 f 22 20 a 42 22 pool 0");
  EXPECT_EQ(calls(10), "a 0 22 a 22 20 f 22 20 a 42 22 pool 0");
  EXPECT_EQ(calls(11), "a 0 22 a 22 20 pool 1");
}

TEST(RecordedMemory, FeedsAddressesAndFailuresBack) {
  using Kind = RecordedCall::Kind;
  RecordedMemory memory({{Kind::segment_alloc, 1000, 20 * k_mib},
                         {Kind::segment_free, 1000, 20 * k_mib},
                         {Kind::segment_alloc, 77, 22 * k_mib}});
  CachingAllocator allocator(AllocatorOptions(), memory);
  memory.open_window(1, false);
  const BlockHandle first = allocator.malloc(5 * k_mib);
  EXPECT_EQ(allocator.block(first).ptr, 1000u);
  memory.close_window();
  allocator.free(first);
  memory.open_window(3, false);
  EXPECT_EQ(allocator.block(allocator.malloc(21 * k_mib)).ptr, 77u);
  memory.close_window();
  EXPECT_EQ(memory.matched(), 3u);
  EXPECT_EQ(memory.differing(), 0u);
  EXPECT_EQ(allocator.stats().num_alloc_retries, 1u);
  // The request that ran out of memory when it was recorded has no call left.
  memory.open_window(3, true);
  EXPECT_FALSE(allocator.malloc(21 * k_mib));
}

TEST(RecordedMemory, CountsWhatDiffers) {
  using Kind = RecordedCall::Kind;
  RecordedMemory memory(
      {{Kind::segment_alloc, 1000, 24 * k_mib}, {Kind::segment_free, 5, 2 * k_mib}});
  CachingAllocator allocator(AllocatorOptions(), memory);
  memory.open_window(2, false);
  EXPECT_TRUE(allocator.malloc(5 * k_mib));  // asks for 20
  memory.close_window();
  EXPECT_EQ(memory.matched(), 0u);
  EXPECT_EQ(memory.first_difference(), 0u);
  EXPECT_EQ(memory.differing(), 3u);
}

}  // namespace pools_test
}  // namespace cufit::memory
