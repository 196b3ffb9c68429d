// SPDX-License-Identifier: Apache-2.0
#include "formats/system/sshd_config.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace sshd_config_test {

std::string all(std::string_view text) {
  std::string out;
  for (const SshdSetting& one : parse_sshd_config(text))
    out += std::to_string(one.line) + " " + one.keyword + "=" + one.value +
           (one.match.empty() ? "" : " [" + one.match + "]") + "\n";
  return out;
}

TEST(SshdConfig, LinesAsSshdReadsThem) {
  EXPECT_EQ(all("# comment\n\n  PasswordAuthentication\tno\r\nPORT=2222\nPort = 22 # why\n"),
            "3 passwordauthentication=no\n4 port=2222\n5 port=22\n");
  EXPECT_EQ(all("Banner \"/a b#c\"\nHostKey /a#b\n"), "1 banner=/a b#c\n2 hostkey=/a#b\n");
  EXPECT_EQ(all("PermitRootLogin\nPermitRootLogin=\n=x\n"), "");
}

TEST(SshdConfig, MatchHoldsUntilTheNextOne) {
  EXPECT_EQ(all("UsePAM no\nMatch User bob\n PermitRootLogin yes\nMatch all\nPort 1\n"),
            "1 usepam=no\n3 permitrootlogin=yes [User bob]\n5 port=1\n");
}

}  // namespace sshd_config_test
}  // namespace cufit::formats
