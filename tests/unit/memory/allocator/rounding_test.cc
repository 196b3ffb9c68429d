// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/rounding.h"

#include <gtest/gtest.h>

namespace cufit::memory {
namespace rounding_test {

PowerOfTwoDivisions all(uint64_t divisions) {
  PowerOfTwoDivisions table;
  table.fill(divisions);
  return table;
}

TEST(RoundSize, MultiplesOf512) {
  const PowerOfTwoDivisions none{};
  EXPECT_EQ(round_size(0, none), 512u);
  EXPECT_EQ(round_size(1, none), 512u);
  EXPECT_EQ(round_size(512, none), 512u);
  EXPECT_EQ(round_size(513, none), 1024u);
  EXPECT_EQ(round_size(5000000, none), 5000192u);
}

TEST(RoundSize, PowerOfTwoDivisions) {
  // Between 1024 and 2048 four divisions are 1280, 1536, 1792; but 1200 is not above 512 * 4.
  EXPECT_EQ(round_size(1200, all(4)), 1536u);
  EXPECT_EQ(round_size(2049, all(4)), 2560u);
  EXPECT_EQ(round_size(5 * k_mib + 1, all(4)), 6 * k_mib);
  EXPECT_EQ(round_size(8 * k_mib, all(4)), 8 * k_mib);
  EXPECT_EQ(round_size(9 * k_mib, all(2)), 12 * k_mib);
  EXPECT_EQ(round_size(9 * k_mib + 1, all(1)), 9 * k_mib + 512);  // 1 division: as without
}

TEST(RoundSize, DivisionsBySize) {
  PowerOfTwoDivisions table{};
  table[0] = 2;
  table[5] = 8;
  EXPECT_EQ(roundup_power2_divisions(table, 700), 2u);
  EXPECT_EQ(roundup_power2_divisions(table, 2 * k_mib - 1), 2u);
  EXPECT_EQ(roundup_power2_divisions(table, 2 * k_mib), 0u);
  EXPECT_EQ(roundup_power2_divisions(table, 33 * k_mib), 8u);
  table[15] = 4;
  EXPECT_EQ(roundup_power2_divisions(table, uint64_t{200} << 30), 4u);
  EXPECT_EQ(round_size(33 * k_mib, table), 36 * k_mib);
}

TEST(NextDivision, MoreDivisionsThanBytes) { EXPECT_EQ(roundup_power2_next_division(5, 16), 8u); }

TEST(AllocationSize, SegmentsBySize) {
  EXPECT_EQ(get_allocation_size(512, k_large_buffer), 2 * k_mib);
  EXPECT_EQ(get_allocation_size(k_mib, k_large_buffer), 2 * k_mib);
  EXPECT_EQ(get_allocation_size(k_mib + 512, k_large_buffer), 20 * k_mib);
  EXPECT_EQ(get_allocation_size(10 * k_mib - 512, k_large_buffer), 20 * k_mib);
  EXPECT_EQ(get_allocation_size(10 * k_mib, k_large_buffer), 10 * k_mib);
  EXPECT_EQ(get_allocation_size(10 * k_mib + 512, k_large_buffer), 12 * k_mib);
  EXPECT_EQ(get_allocation_size(2 * k_mib, 64 * k_mib), 64 * k_mib);
}

}  // namespace rounding_test
}  // namespace cufit::memory
