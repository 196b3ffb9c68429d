// SPDX-License-Identifier: Apache-2.0
#include "base/path.h"

#include <gtest/gtest.h>

namespace cufit {
namespace path_test {

TEST(Path, IsMeantInAFolder) {
  EXPECT_EQ(path_in("a/b", "c"), "a/b/c");
  EXPECT_EQ(path_in("a/", "c"), "a/c");
  EXPECT_EQ(path_in("", "c"), "c");
  EXPECT_EQ(path_in("a", "/c"), "/c");
}

TEST(Path, HasAParentAndAName) {
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("b"), "");
  EXPECT_EQ(parent_folder("/b"), "/");
  EXPECT_EQ(parent_folder("a/b/"), "a/b");
  EXPECT_EQ(file_name("a/b.toml"), "b.toml");
}

TEST(Path, IsWorkedOutByName) {
  EXPECT_EQ(normal_path("a/./b/../c"), "a/c");
  EXPECT_EQ(normal_path("../a"), "../a");
  EXPECT_EQ(normal_folder("/usr/share/../lib/libz.so.1"), "/usr/lib");
}

}  // namespace path_test
}  // namespace cufit
