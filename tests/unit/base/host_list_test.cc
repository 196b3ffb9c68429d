// SPDX-License-Identifier: Apache-2.0
#include "base/host_list.h"

#include <gtest/gtest.h>

namespace cufit {
namespace host_list_test {

std::vector<std::string> names(const std::string& text) {
  const auto out = expand_host_list(text);
  EXPECT_TRUE(out) << text;
  return out.value_or(std::vector<std::string>());
}

TEST(HostList, Expands) {
  EXPECT_EQ(names("a"), std::vector<std::string>({"a"}));
  EXPECT_EQ(names("gpu[08-11],login"),
            std::vector<std::string>({"gpu08", "gpu09", "gpu10", "gpu11", "login"}));
  EXPECT_EQ(names("r[1,3-4]n-ib"), std::vector<std::string>({"r1n-ib", "r3n-ib", "r4n-ib"}));
  EXPECT_EQ(names(" a , b "), std::vector<std::string>({"a", "b"}));
}

TEST(HostList, RefusesWhatIsNone) {
  for (const char* text :
       {"", "a,,b", "gpu[", "gpu]1[", "gpu[a-b]", "gpu[4-1]", "gpu[1-2", "gpu[1-65535,1-65535]",
        "a[1-300]b[1-300]", "gpu[0-99999999]", "gpu[18446744073709551615-18446744073709551616]"})
    EXPECT_FALSE(expand_host_list(text)) << text;
}

// What is written is read again as the same names.
TEST(HostList, IsItsOwnInverse) {
  const std::vector<std::string> all = {"gpu001", "gpu002", "gpu003", "gpu007", "gpu10",
                                        "gpu9",   "login",  "n1-ib",  "n2-ib"};
  EXPECT_EQ(host_list(all), "gpu[001-003,007],gpu10,gpu9,login,n[1-2]-ib");
  std::vector<std::string> again = names(host_list(all));
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, all);
  EXPECT_EQ(host_list({"b", "a", "b"}), "a,b");
  EXPECT_EQ(host_list({}), "");
}

}  // namespace host_list_test
}  // namespace cufit
