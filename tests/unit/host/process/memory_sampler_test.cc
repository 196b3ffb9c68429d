// SPDX-License-Identifier: Apache-2.0
#include "host/process/memory_sampler.h"

#include <gtest/gtest.h>

namespace cufit::host {
namespace memory_sampler_test {

MemorySample sample(double seconds, uint64_t first, uint64_t second) {
  return {seconds, {{0, "a", first, 100}, {1, "b", second, 100}}};
}

// An exception frees the program's memory before the program ends.
TEST(MemorySampler, GivesTheFullestOfTheLastTenSeconds) {
  const std::deque<MemorySample> samples = {sample(1, 90, 90), sample(5, 10, 50), sample(6, 40, 20),
                                            sample(7, 0, 0)};
  ASSERT_NE(fullest_of(samples, 12), nullptr);
  EXPECT_EQ(fullest_of(samples, 12)->seconds, 6);  // the latest of two alike; the first is too old
  EXPECT_EQ(fullest_of(samples, 10)->seconds, 1);
  EXPECT_EQ(fullest_of(samples, 16.5)->seconds, 7);
  EXPECT_EQ(fullest_of(samples, 60), nullptr);
  EXPECT_EQ(fullest_of({}, 1), nullptr);
}

}  // namespace memory_sampler_test
}  // namespace cufit::host
