// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <gtest/gtest.h>

namespace cufit {
namespace nearest_test {

TEST(EditDistance, CountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("doctor", "doctor"), 0u);
  EXPECT_EQ(edit_distance("dcotor", "doctor"), 1u);
  EXPECT_EQ(edit_distance("docto", "doctor"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(Nearest, OffersOnlyWhatIsClose) {
  std::vector<std::string> commands = {"doctor", "inspect", "collect-env", "self"};
  EXPECT_EQ(nearest("docter", commands, 1), std::vector<std::string>{"doctor"});
  EXPECT_EQ(nearest("INSPEKT", commands, 3), std::vector<std::string>{"inspect"});
  EXPECT_TRUE(nearest("train", commands, 3).empty());
  EXPECT_TRUE(nearest("", commands, 3).empty());
  EXPECT_TRUE(nearest(std::string(100, 'x'), commands, 3).empty());
}

}  // namespace nearest_test
}  // namespace cufit
