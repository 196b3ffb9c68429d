// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/card_capacity.h"

#include <gtest/gtest.h>

namespace cufit::memory {
namespace card_capacity_test {

const knowledge::Knowledge& builtin() { return knowledge::Knowledge::builtin(); }

TEST(CardCapacity, EveryRowNamesACardAndIsBelowItsNominalSize) {
  for (const knowledge::GpuMemoryRow& row : builtin().gpu_memory) {
    const knowledge::Gpu* gpu = builtin().find_gpu(row.gpu);
    ASSERT_NE(gpu, nullptr) << row.gpu;
    EXPECT_EQ(gpu->name, row.gpu);
    EXPECT_LT(row.total_gib, gpu->memory_gb) << row.gpu;
    EXPECT_GT(row.total_gib, gpu->memory_gb * 0.88) << row.gpu;
    EXPECT_FALSE(row.source.empty()) << row.gpu;
  }
}

// What is reckoned for a card without a row is never more than 2 % above what such cards have, nor
// 10 % below (small cards of before Turing).
TEST(CardCapacity, TheReckonedSizeFitsTheKnownCards) {
  for (const knowledge::GpuMemoryRow& row : builtin().gpu_memory) {
    knowledge::Gpu unknown = *builtin().find_gpu(row.gpu);
    unknown.name = "a card without a row";
    const CardCapacity reckoned = card_capacity(unknown, builtin());
    EXPECT_FALSE(reckoned.measured);
    const double share = static_cast<double>(reckoned.total) / (row.total_gib * (1u << 30));
    EXPECT_LT(share, 1.02) << row.gpu;
    EXPECT_GT(share, 0.90) << row.gpu;
  }
}

TEST(CardCapacity, OfAnRtx3090) {
  const CardCapacity card = card_capacity(*builtin().find_gpu("RTX 3090"), builtin());
  EXPECT_TRUE(card.measured);
  EXPECT_GT(card.usable(), uint64_t{23} << 30);
  EXPECT_LT(card.usable(), uint64_t{24} << 30);
}

}  // namespace card_capacity_test
}  // namespace cufit::memory
