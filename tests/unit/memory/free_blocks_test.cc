// SPDX-License-Identifier: Apache-2.0
#include "memory/free_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "memory/block_pool.h"

namespace cufit::memory {
namespace {

TEST(FreeBlocks, OrderedBySizeThenAddress) {
  FreeBlocks blocks;
  blocks.insert(1024, 5, 1);
  blocks.insert(512, 9, 2);
  blocks.insert(1024, 3, 3);
  auto at = blocks.lower_bound(600, 0);
  EXPECT_EQ(blocks.at(at).block, 3u);
  at = blocks.next(at);
  EXPECT_EQ(blocks.at(at).block, 1u);
  EXPECT_TRUE(blocks.at_end(blocks.next(at)));
  EXPECT_TRUE(blocks.at_end(blocks.lower_bound(1025, 0)));
  at = blocks.lower_bound(5000, 0);
  EXPECT_TRUE(blocks.step_back(at));
  EXPECT_EQ(blocks.at(at).block, 1u);
}

TEST(FreeBlocks, AgreesWithASet) {
  using Key = std::pair<uint64_t, uint64_t>;
  std::mt19937_64 random(7);
  FreeBlocks blocks;
  std::set<Key> expected;
  for (int i = 0; i < 40000; ++i) {
    const Key key{512 * (1 + random() % 40), 512 * (random() % 400)};
    // Grows to about 6,000 entries, then shrinks to none, so that chunks are cut and dropped.
    const bool grow = random() % 8 < (i < 20000 ? 6u : 1u);
    if (grow && expected.insert(key).second) blocks.insert(key.first, key.second, 0);
    auto victim = expected.lower_bound(key);
    if (!grow && victim != expected.end()) {
      blocks.erase(victim->first, victim->second, 0);
      expected.erase(victim);
    }
    ASSERT_EQ(blocks.size(), expected.size());
    const auto found = blocks.lower_bound(key.first, key.second);
    const auto wanted = expected.lower_bound(key);
    ASSERT_EQ(blocks.at_end(found), wanted == expected.end());
    if (!blocks.at_end(found)) {
      ASSERT_EQ(Key(blocks.at(found).size, blocks.at(found).address), *wanted);
    }
  }
  auto at = blocks.begin();
  for (const Key& key : expected) {
    ASSERT_EQ(Key(blocks.at(at).size, blocks.at(at).address), key);
    at = blocks.next(at);
  }
  EXPECT_TRUE(blocks.at_end(at));
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

}  // namespace
}  // namespace cufit::memory
