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
  EXPECT_EQ(host_list(all), "gpu[001-003,007],gpu[9-10],login,n[1-2]-ib");
  std::vector<std::string> again = names(host_list(all));
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, all);
  EXPECT_EQ(host_list({"b", "a", "b"}), "a,b");
  EXPECT_EQ(host_list({}), "");
}

TEST(HostList, NumbersThatGrow) {
  std::vector<std::string> all;
  for (int i = 1; i <= 3000; ++i) all.push_back("n" + std::to_string(i));
  EXPECT_EQ(host_list(all), "n[1-3000]");
  EXPECT_EQ(names("n[1-3000]"), all);
  EXPECT_EQ(host_list({"g08", "g9", "g10", "g09"}), "g[08-09],g[9-10]");
  EXPECT_EQ(host_list({"g099", "g100", "g1000"}), "g[099-100,1000]");
  for (const std::vector<std::string>& few :
       {std::vector<std::string>{"g08", "g09", "g10", "g9"}, {"g099", "g100", "g1000", "g9"}}) {
    std::vector<std::string> again = names(host_list(few));
    std::sort(again.begin(), again.end());
    EXPECT_EQ(again, few);
  }
}

}  // namespace host_list_test
}  // namespace cufit
