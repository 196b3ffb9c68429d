// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <gtest/gtest.h>

namespace cufit {
namespace parallel_test {

TEST(Parallel, EveryPieceOfWorkIsDoneOnce) {
  for (const size_t threads : {0, 1, 2, 64}) {
    for (const size_t count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> done(count);
      in_parallel(count, threads, [&](size_t i) { ++done[i]; });
      for (const std::atomic<int>& one : done) EXPECT_EQ(one, 1);
    }
  }
}

}  // namespace parallel_test
}  // namespace cufit
