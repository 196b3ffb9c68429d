// SPDX-License-Identifier: Apache-2.0
#include "report/html/axis.h"

#include <gtest/gtest.h>

namespace cufit::report {
namespace axis_test {

constexpr uint64_t k_mib = 1u << 20, k_gib = 1u << 30;

TEST(Axis, CountsGoInRoundSteps) {
  EXPECT_EQ(count_ticks(512, 6), (std::vector<uint64_t>{0, 200, 400}));
  EXPECT_EQ(count_ticks(8, 5), (std::vector<uint64_t>{0, 2, 4, 6, 8}));
  EXPECT_EQ(count_ticks(1, 5), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(count_ticks(0, 5), (std::vector<uint64_t>{0}));
  EXPECT_EQ(count_ticks(1381, 5), (std::vector<uint64_t>{0, 500, 1000}));
}

TEST(Axis, BytesGoInRoundPartsOfTheirUnit) {
  EXPECT_EQ(byte_ticks(9 * k_gib, 6),
            (std::vector<uint64_t>{0, 2 * k_gib, 4 * k_gib, 6 * k_gib, 8 * k_gib}));
  EXPECT_EQ(byte_ticks(2 * k_gib, 5),
            (std::vector<uint64_t>{0, k_gib / 2, k_gib, 3 * k_gib / 2, 2 * k_gib}));
  EXPECT_EQ(byte_ticks(450 * k_mib, 6),
            (std::vector<uint64_t>{0, 100 * k_mib, 200 * k_mib, 300 * k_mib, 400 * k_mib}));
  EXPECT_EQ(byte_tick_text(3 * k_gib / 2), "1.5 GiB");
  EXPECT_EQ(byte_tick_text(500 * k_mib), "500 MiB");
  EXPECT_EQ(byte_tick_text(k_gib), "1 GiB");
  EXPECT_EQ(byte_tick_text(0), "0");
}

}  // namespace axis_test
}  // namespace cufit::report
