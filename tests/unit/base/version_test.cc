// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

#include <gtest/gtest.h>

namespace cufit {
namespace version_test {

TEST(Version, OrdersByNumbersNotByText) {
  const char* sorted[] = {"450.80.02", "525.60.13", "535.54.03", "535.183.01",
                          "580",       "580.65.06", "1000"};
  for (size_t i = 0; i + 1 < std::size(sorted); ++i) {
    EXPECT_LT(*parse_version(sorted[i]), *parse_version(sorted[i + 1])) << sorted[i];
  }
}

TEST(Version, MissingPartsAreZero) { EXPECT_EQ(*parse_version("12"), *parse_version("12.0.0")); }

TEST(Version, StopsAtForeignText) {
  EXPECT_EQ(parse_version("12.8-ea")->text(), "12.8");
  EXPECT_EQ(parse_version("12.x")->text(), "12");
  EXPECT_FALSE(parse_version(""));
  EXPECT_FALSE(parse_version("v12"));
  EXPECT_FALSE(parse_version("99999999999"));
}

TEST(Version, ReadsCudaEncoding) {
  EXPECT_EQ(cuda_version_text(12020), "12.2");
  EXPECT_EQ(cuda_version_text(13000), "13.0");
}

TEST(ComputeCapability, NeedsTwoParts) {
  EXPECT_EQ(parse_compute_capability("12.0")->sm(), "120");
  EXPECT_FALSE(parse_compute_capability("12"));
}

}  // namespace version_test
}  // namespace cufit
