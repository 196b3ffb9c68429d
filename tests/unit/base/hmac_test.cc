// SPDX-License-Identifier: Apache-2.0
// Vectors of RFC 4231.
#include "base/hmac.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit {
namespace hmac_test {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

TEST(Hmac, IsThatOfTheStandard) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace hmac_test
}  // namespace cufit
