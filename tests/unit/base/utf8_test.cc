// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace cufit::test {
namespace {

// Each number of a letter comes back, from a sequence that is well-formed as a whole.
TEST(Utf8, IsReadAsItWasWritten) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;  // surrogates
    std::string text;
    append_utf8(text, code);
    ASSERT_EQ(utf8_length(text), text.size()) << code;
    ASSERT_EQ(utf8_code(text), code);
  }
}

TEST(Utf8, KnownLetters) {
  std::string text;
  for (const uint32_t code : {0x41u, 0xfcu, 0x663eu, 0x1f600u}) append_utf8(text, code);
  EXPECT_EQ(text, "A\xc3\xbc\xe6\x98\xbe\xf0\x9f\x98\x80");
}

}  // namespace
}  // namespace cufit::test
