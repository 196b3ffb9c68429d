// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/base64.h"

namespace cufit {
namespace base64_test {

TEST(Base64, IsThatOfTheStandard) {  // RFC 4648, section 10
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [bytes, text] : vectors) EXPECT_EQ(base64(bytes), text);
  EXPECT_EQ(base64(std::string("\xfb\xff\x00", 3)), "+/8A");
}

}  // namespace base64_test
}  // namespace cufit
