// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/near_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cufit::analysis {
namespace near_search_test {

TEST(NearSearch, AgreesWithABinarySearchWhateverWasAskedBefore) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> numbers(random() % 12);
    for (uint32_t& number : numbers) number = random() % 30;
    std::sort(numbers.begin(), numbers.end());
    NearSearch search;
    for (int i = 0; i < 200; ++i) {
      const uint32_t value = i % 3 == 0 ? UINT32_MAX : random() % 32;
      EXPECT_EQ(search.not_greater(numbers.size(), value, [&](size_t at) { return numbers[at]; }),
                static_cast<size_t>(std::upper_bound(numbers.begin(), numbers.end(), value) -
                                    numbers.begin()));
    }
  }
}

TEST(EventRanges, WithAnEvent) {
  EventRanges ranges;
  EXPECT_TRUE(ranges.empty());
  EXPECT_FALSE(ranges.with(0));
  ranges.push_back({3, 5});
  ranges.push_back({5, 6});
  ranges.push_back({9, 12});
  EXPECT_FALSE(ranges.with(2));
  EXPECT_EQ(ranges.with(3), 0u);
  EXPECT_EQ(ranges.with(4), 0u);
  EXPECT_EQ(ranges.with(5), 1u);
  EXPECT_FALSE(ranges.with(6));
  EXPECT_EQ(ranges.with(11), 2u);
  EXPECT_FALSE(ranges.with(12));
  EXPECT_FALSE(ranges.with(UINT32_MAX));
}

}  // namespace near_search_test
}  // namespace cufit::analysis
