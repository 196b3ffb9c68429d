// SPDX-License-Identifier: Apache-2.0
#include "base/variables.h"

#include <gtest/gtest.h>

namespace cufit {
namespace variables_test {

TEST(Variables, TheFirstOfANameCounts) {
  const std::vector<std::string> variables = {"AB=1", "A", "A=2=3", "A=4", "C="};
  EXPECT_EQ(variable_value(variables, "A"), "2=3");
  EXPECT_EQ(variable_value(variables, "AB"), "1");
  EXPECT_EQ(variable_value(variables, "B"), "");
  EXPECT_EQ(variable_value(variables, "C"), "");
}

}  // namespace variables_test
}  // namespace cufit
