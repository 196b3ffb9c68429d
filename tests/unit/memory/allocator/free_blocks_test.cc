// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/free_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "memory/allocator/block_pool.h"

namespace cufit::memory {
namespace free_blocks_test {

// Blocks by hand, in a store of their own.
class Blocks {
 public:
  BlockIndex make(uint64_t size, uint64_t address) {
    const BlockIndex block = store.create();
    store[block].size = size;
    store[block].ptr = address;
    return block;
  }

  BlockStore store;
  FreeBlocks free{store};
};

TEST(FreeBlocks, OrderedBySizeThenAddress) {
  Blocks blocks;
  const BlockIndex high = blocks.make(1024, 512 * 5);
  const BlockIndex small = blocks.make(512, 512 * 9);
  const BlockIndex low = blocks.make(1024, 512 * 3);
  for (const BlockIndex block : {high, small, low}) blocks.free.insert(block);
  auto at = blocks.free.lower_bound(600, 0);
  EXPECT_EQ(blocks.free.at(at), low);
  at = blocks.free.next(at);
  EXPECT_EQ(blocks.free.at(at), high);
  EXPECT_TRUE(blocks.free.at_end(blocks.free.next(at)));
  EXPECT_TRUE(blocks.free.at_end(blocks.free.lower_bound(1025, 0)));
  at = blocks.free.lower_bound(5000, 0);
  EXPECT_TRUE(blocks.free.step_back(at));
  EXPECT_EQ(blocks.free.at(at), high);
}

// What one number cannot tell apart: blocks from 32 GiB on, sizes and addresses that are no
// multiples of 512, addresses beyond 47 bits, two blocks at one place.
TEST(FreeBlocks, UnusualBlocksHaveTheirPlacesToo) {
  constexpr uint64_t gib = uint64_t{1} << 30, far = uint64_t{1} << 60;
  Blocks blocks;
  const std::vector<std::pair<uint64_t, uint64_t>> in_order = {{1, 7},
                                                               {511, 3},
                                                               {512, 512},
                                                               {512, 513},
                                                               {512, 700},
                                                               {512, 1024},
                                                               {512, far},
                                                               {512, far + 1},
                                                               {513, 0},
                                                               {600, 0},
                                                               {1024, 0},
                                                               {1024, 0},
                                                               {32 * gib - 512, 0},
                                                               {32 * gib, 5},
                                                               {32 * gib, 9},
                                                               {32 * gib + 1, 0},
                                                               {40 * gib, 512},
                                                               {40 * gib, 1024},
                                                               {UINT64_MAX, 0},
                                                               {UINT64_MAX, far}};
  std::vector<BlockIndex> made;
  for (const auto& [size, address] : in_order) made.push_back(blocks.make(size, address));
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<BlockIndex> shuffled = made;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (const BlockIndex block : shuffled) blocks.free.insert(block);
    std::vector<BlockIndex> seen;
    for (auto at = blocks.free.begin(); !blocks.free.at_end(at); at = blocks.free.next(at))
      seen.push_back(blocks.free.at(at));
    EXPECT_EQ(seen, made);
    for (size_t i = 0; i < made.size(); ++i) {
      const auto at = blocks.free.lower_bound(in_order[i].first, in_order[i].second);
      const auto first = std::find(in_order.begin(), in_order.end(), in_order[i]);
      EXPECT_EQ(blocks.free.at(at), made[static_cast<size_t>(first - in_order.begin())]);
    }
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (const BlockIndex block : shuffled) blocks.free.erase(block);
    EXPECT_TRUE(blocks.free.empty());
  }
}

// Long runs of one class, too: they are there in order, forwards and backwards, and go one by one.
TEST(FreeBlocks, ManyOfOneSize) {
  Blocks blocks;
  std::mt19937 random(11);
  std::vector<std::pair<uint64_t, BlockIndex>> made;  // by address
  for (uint64_t i = 0; i < 3000; ++i) made.emplace_back(512 * i, blocks.make(4096, 512 * i));
  const BlockIndex before = blocks.make(512, 0), after = blocks.make(8192, 0);
  std::vector<std::pair<uint64_t, BlockIndex>> shuffled = made;
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  blocks.free.insert(after);
  for (const auto& [address, block] : shuffled) blocks.free.insert(block);
  blocks.free.insert(before);
  auto at = blocks.free.begin();
  EXPECT_EQ(blocks.free.at(at), before);
  for (const auto& [address, block] : made) {
    at = blocks.free.next(at);
    ASSERT_EQ(blocks.free.at(at), block);
    ASSERT_EQ(blocks.free.at(blocks.free.lower_bound(4096, address)), block);
    ASSERT_EQ(blocks.free.at(blocks.free.find(block)), block);
  }
  EXPECT_EQ(blocks.free.at(blocks.free.next(at)), after);
  at = blocks.free.end();
  ASSERT_TRUE(blocks.free.step_back(at));
  EXPECT_EQ(blocks.free.at(at), after);
  for (size_t i = made.size(); i-- > 0;) {
    ASSERT_TRUE(blocks.free.step_back(at));
    ASSERT_EQ(blocks.free.at(at), made[i].second);
  }
  ASSERT_TRUE(blocks.free.step_back(at));
  EXPECT_EQ(blocks.free.at(at), before);
  EXPECT_FALSE(blocks.free.step_back(at));
  // One of them gets another size and leaves the run.
  at = blocks.free.find(made[7].second);
  blocks.store[made[7].second].size = 1024;
  blocks.free.replace(at, made[7].second);
  EXPECT_EQ(blocks.free.at(blocks.free.next(blocks.free.begin())), made[7].second);
  for (const auto& [address, block] : shuffled) blocks.free.erase(block);
  EXPECT_EQ(blocks.free.size(), 2u);
  EXPECT_EQ(blocks.free.at(blocks.free.lower_bound(4096, 0)), after);
}

TEST(FreeBlocks, AgreesWithASet) {
  using Key = std::tuple<uint64_t, uint64_t, BlockIndex>;
  std::mt19937_64 random(7);
  Blocks blocks;
  std::set<Key> expected;
  const auto any_size = [&] {
    const uint64_t size = 512 * (1 + random() % 40);
    return random() % 16 == 0 ? size << 31 : size;  // 1 TiB to 40 TiB
  };
  const auto any_address = [&] { return 512 * (random() % 400) + (random() % 8 == 0 ? 1 : 0); };
  for (int i = 0; i < 60000; ++i) {
    const uint64_t size = any_size(), address = any_address();
    auto victim = expected.lower_bound({size, address, 0});
    // Grows to about 6,000 entries, then shrinks to none, so that chunks are cut and dropped.
    const uint64_t kind = random() % 8;
    if (kind < (i < 20000 ? 5u : 1u)) {
      const BlockIndex block = blocks.make(size, address);
      blocks.free.insert(block);
      expected.insert({size, address, block});
    } else if (kind == 7 && victim != expected.end()) {
      // Another size for the same block, or another block in its place, as split and join ask.
      const BlockIndex before = std::get<2>(*victim);
      const auto at = blocks.free.find(before);
      const BlockIndex after = random() % 2 == 0 ? before : blocks.make(0, 0);
      blocks.store[after].size =
          random() % 4 == 0 ? any_size() : std::get<0>(*victim) + 512 * (random() % 3);
      blocks.store[after].ptr = any_address();
      blocks.free.replace(at, after);
      expected.erase(victim);
      expected.insert({blocks.store[after].size, blocks.store[after].ptr, after});
    } else if (victim != expected.end()) {
      blocks.free.erase(std::get<2>(*victim));
      blocks.store.destroy(std::get<2>(*victim));
      expected.erase(victim);
    }
    ASSERT_EQ(blocks.free.size(), expected.size());
    const auto found = blocks.free.lower_bound(size, address);
    const auto wanted = expected.lower_bound({size, address, 0});
    ASSERT_EQ(blocks.free.at_end(found), wanted == expected.end());
    if (!blocks.free.at_end(found)) {
      ASSERT_EQ(blocks.free.at(found), std::get<2>(*wanted));
    }
    if (i % 1000 != 0 && expected.size() > 20) continue;
    auto at = blocks.free.begin();
    for (const Key& key : expected) {
      ASSERT_EQ(blocks.free.at(at), std::get<2>(key));
      at = blocks.free.next(at);
    }
    ASSERT_TRUE(blocks.free.at_end(at));
  }
  EXPECT_LT(expected.size(), 20u);
}

TEST(Streams, OrderByValueWhateverComesFirst) {
  Streams streams;
  EXPECT_EQ(streams.find_or_add(70), 0u);
  EXPECT_EQ(streams.find_or_add(0), 1u);
  EXPECT_EQ(streams.find_or_add(uint64_t{1} << 63), 2u);
  EXPECT_EQ(streams.find_or_add(9), 3u);
  EXPECT_EQ(streams.find_or_add(0), 1u);
  EXPECT_EQ(streams.by_value(), (std::vector<StreamIndex>{1, 3, 0, 2}));
}

}  // namespace free_blocks_test
}  // namespace cufit::memory
