// SPDX-License-Identifier: Apache-2.0
#include "formats/system/accounts.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace accounts_test {

TEST(Accounts, Passwd) {
  const auto found = parse_passwd(
      "root:x:0:0:root:/root:/bin/bash\n#x:x:1:1::/:/x\nshort:x:1\n"
      "app:x:1000:1000::/home/app:/usr/sbin/nologin\nbad:x:no:1::/:/a\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].uid, 0u);
  EXPECT_EQ(found[1].name, "app");
  EXPECT_EQ(found[1].shell, "/usr/sbin/nologin");
  EXPECT_EQ(found[1].line, 4u);
  EXPECT_FALSE(found[2].uid);
}

TEST(Accounts, WhoLetsIn) {
  const auto found = parse_shadow(
      "root:$6$s$h:1::::::\na:*:1::::::\nb:!:1::::::\nc:!$6$s$h:1:::\n"
      "d::1::::::\n:x:\ne:!!:1::::::\n");
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[0].state, PasswordState::set);
  for (const size_t i : {1, 2, 3, 5}) EXPECT_EQ(found[i].state, PasswordState::locked) << i;
  EXPECT_EQ(found[4].state, PasswordState::empty);
  EXPECT_EQ(found[4].line, 5u);
}

}  // namespace accounts_test
}  // namespace cufit::formats
