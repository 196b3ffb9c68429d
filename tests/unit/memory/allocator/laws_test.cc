// SPDX-License-Identifier: Apache-2.0
// What must hold in every state of the allocator, after each of many random requests under every
// kind of settings.
#include <random>

#include "memory/allocator/release.h"
#include "unit/memory/allocator/allocator_fixture.h"

namespace cufit::memory {
namespace laws_test {

struct Totals {
  uint64_t reserved = 0, allocated = 0, active = 0, segments = 0;
};

// Blocks lie side by side, free neighbours are one, segments do not overlap.
Totals check_segments(const std::vector<SegmentView>& segments) {
  Totals totals;
  uint64_t end = 0;
  for (const SegmentView& segment : segments) {
    EXPECT_GE(segment.address, end);
    end = segment.address + segment.size;
    uint64_t at = segment.address;
    bool free_before = false;
    for (const BlockView& block : segment.blocks) {
      EXPECT_EQ(block.address, at);
      EXPECT_GT(block.size, 0u);
      EXPECT_EQ(block.size % 512, 0u);
      EXPECT_LE(block.requested_size, block.size);
      at += block.size;
      const bool is_free = block.state == BlockUse::inactive;
      EXPECT_FALSE(is_free && free_before);
      free_before = is_free;
      if (!is_free) totals.active += block.size;
      if (block.state == BlockUse::allocated) totals.allocated += block.size;
    }
    EXPECT_EQ(at, end);
    totals.reserved += segment.size;
    totals.segments += segment.is_expandable ? 0 : 1;
  }
  return totals;
}

void check(const Bench& bench) {
  const Totals totals = check_segments(bench.allocator.segments());
  const DeviceStats& stats = bench.allocator.stats();
  EXPECT_EQ(totals.reserved, stats.reserved_bytes.current);
  EXPECT_EQ(totals.allocated, stats.allocated_bytes.current);
  EXPECT_EQ(totals.active, stats.active_bytes.current);
  EXPECT_EQ(totals.segments, stats.segments.current);
  EXPECT_EQ(totals.reserved, bench.memory.used());
  EXPECT_GE(stats.reserved_bytes.peak, stats.reserved_bytes.current);
  EXPECT_GE(stats.allocated_bytes.peak, stats.allocated_bytes.current);
  EXPECT_GE(stats.reserved_bytes.peak, stats.allocated_bytes.peak);
  EXPECT_EQ(stats.cuda_mallocs - stats.cuda_frees, stats.segments.current);
  // Expandable segments map whole pages for a request that was checked with less.
  const DeviceState& state = bench.allocator.state();
  if (state.allowed_memory_maximum && !state.settings.expandable_segments) {
    EXPECT_LE(stats.reserved_bytes.peak, *state.allowed_memory_maximum);
  }
}

uint64_t random_size(std::mt19937_64& random) {
  const unsigned log2 = static_cast<unsigned>(random() % 27);
  return (uint64_t{1} << log2) + random() % (uint64_t{1} << log2);
}

struct Step {
  BlockHandle handle;
  bool waits = false;
};

// The addresses handed out, 0 for out of memory.
std::vector<uint64_t> run(Bench& bench, uint64_t seed, int steps, bool checking) {
  std::mt19937_64 random(seed);
  std::vector<Step> live;
  std::vector<uint64_t> addresses;
  const uint32_t pool = bench.allocator.create_pool({});
  bench.allocator.retain_pool(pool);
  for (int i = 0; i < steps; ++i) {
    const uint64_t dice = random() % 100;
    if (dice < 55) {
      const StreamIndex stream = bench.allocator.stream(random() % 3 * 1000);
      const BlockHandle handle =
          bench.allocator.malloc_in_pool(random_size(random), stream, dice < 5 ? pool : 0);
      addresses.push_back(handle ? bench.allocator.block(handle).ptr : 0);
      if (handle) live.push_back({handle});
    } else if (!live.empty() && dice < 98) {
      std::swap(live[random() % live.size()], live.back());
      Step& step = live.back();
      if (step.waits) {
        bench.allocator.free_completed(step.handle);
        live.pop_back();
      } else if (dice < 62) {
        bench.allocator.free_requested(step.handle);
        step.waits = true;
      } else {
        bench.allocator.free(step.handle);
        live.pop_back();
      }
    } else if (dice == 98) {
      bench.allocator.empty_cache();
    }
    if (checking) check(bench);
    if (testing::Test::HasFailure()) return addresses;
  }
  for (const Step& step : live) {
    if (!step.waits) bench.allocator.free(step.handle);
    bench.allocator.free_completed(step.handle);
  }
  bench.allocator.release_pool(pool);
  bench.allocator.empty_cache();
  return addresses;
}

const char* const k_settings[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:24",
    "expandable_segments:True,max_split_size_mb:24",
    "garbage_collection_threshold:0.5",
    "roundup_power2_divisions:[1:2,4:4,>:8],large_segment_size_mb:32",
    "expandable_segments:True,garbage_collection_threshold:0.5,roundup_power2_divisions:4",
};

TEST(Laws, HoldAfterEveryRequest) {
  for (const char* settings : k_settings)
    for (const uint64_t limit : {uint64_t{0}, 400 * k_mib})
      for (const uint64_t capacity : {uint64_t{0}, 300 * k_mib}) {
        SCOPED_TRACE(std::string(settings) + " limit " + std::to_string(limit) + " capacity " +
                     std::to_string(capacity));
        Bench bench(settings, limit, capacity);
        run(bench, 1 + limit + capacity, 1500, true);
        // Everything was freed and released: nothing is left.
        EXPECT_EQ(bench.reserved(), 0u);
        EXPECT_EQ(bench.allocator.stats().active_bytes.current, 0u);
        EXPECT_TRUE(bench.allocator.segments().empty());
      }
}

TEST(Laws, TwoRunsAreEqual) {
  for (const char* settings : k_settings) {
    Bench first(settings, 300 * k_mib), second(settings, 300 * k_mib);
    EXPECT_EQ(run(first, 5, 3000, false), run(second, 5, 3000, false)) << settings;
    EXPECT_EQ(first.calls(), second.calls()) << settings;
  }
}

TEST(Laws, AdoptedStateGoesOnAsTheOriginal) {
  for (const char* settings : k_settings) {
    SCOPED_TRACE(settings);
    Bench original(settings);
    std::mt19937_64 random(11);
    std::vector<BlockHandle> live;
    for (int i = 0; i < 400; ++i) {
      live.push_back(original.get(random_size(random), random() % 2));
      if (random() % 3 == 0) {
        original.allocator.free(live.back());
        live.pop_back();
      }
    }
    std::vector<SegmentView> segments = original.allocator.segments();
    Bench adopted(settings);
    for (SegmentView& segment : segments) adopted.allocator.adopt(segment);
    check_segments(adopted.allocator.segments());
    EXPECT_EQ(adopted.reserved(), original.reserved());
    EXPECT_EQ(adopted.allocator.stats().allocated_bytes.current,
              original.allocator.stats().allocated_bytes.current);
    // Requests that the cached blocks serve get the same addresses.
    for (int i = 0; i < 200; ++i) {
      const uint64_t size = random_size(random), stream = random() % 2;
      const uint64_t mallocs = original.log.size();
      const BlockHandle a = original.get(size, stream), b = adopted.get(size, stream);
      ASSERT_EQ(original.log.size() > mallocs, adopted.log.size() > 0) << i;
      if (original.log.size() > mallocs) break;
      ASSERT_EQ(original.at(a), adopted.at(b)) << i;
    }
  }
}

}  // namespace laws_test
}  // namespace cufit::memory
