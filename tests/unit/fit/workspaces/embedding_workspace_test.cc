// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/embedding_workspace.h"

#include <gtest/gtest.h>

#include <vector>

namespace cufit::fit {
namespace embedding_workspace_test {

uint64_t bytes(std::vector<uint64_t> numbers) {
  const SizeAt out = embedding_workspace(numbers);
  EXPECT_EQ(out.point, out.upper);
  return out.point;
}

TEST(EmbeddingWorkspace, SortsManyIndicesOnly) {
  EXPECT_EQ(bytes({3072, 50000, 768, 4}), 0u);
  // 3,073 indices of as many rows: 3,380 parts.
  EXPECT_EQ(bytes({3073, 50000, 768, 4}), 8u * (3 * 3073 + 2 * 3073 + 3380) + 3380u * 768 * 4);
}

TEST(EmbeddingWorkspace, SortsFewIndicesOfBags) {
  // 3,000 of 50,000 rows on an NVIDIA H200: 3 x 24,000 bytes, 2 x 24,000, 26,400 and 844,800.
  const std::vector<uint64_t> numbers{3000, 50000, 64, 4};
  EXPECT_EQ(embedding_workspace(numbers, true).point, 991200u);
  EXPECT_EQ(bytes(numbers), 0u);
}

TEST(EmbeddingWorkspace, MeetsNoMoreRowsThanThereAre) {
  EXPECT_EQ(bytes({10000, 2, 64, 4}), 8u * (30000 + 4 + 1002) + 1002u * 64 * 4);
}

TEST(EmbeddingWorkspace, TakesNothingOfOtherNumbers) {
  EXPECT_EQ(bytes({}), 0u);
  EXPECT_EQ(bytes({10000, 2, 64}), 0u);
  EXPECT_EQ(bytes({UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}), 0u);
  EXPECT_EQ(bytes({10000, UINT64_MAX, UINT64_MAX, 4}), 0u);
}

}  // namespace embedding_workspace_test
}  // namespace cufit::fit
