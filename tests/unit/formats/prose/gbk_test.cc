// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/gbk.h"

#include <gtest/gtest.h>
#include <iconv.h>

namespace cufit::formats {
namespace gbk_test {

bool can_convert() {
  const iconv_t handle = ::iconv_open("UTF-8", "GB18030");
  if (handle == reinterpret_cast<iconv_t>(-1)) return false;
  ::iconv_close(handle);
  return true;
}

TEST(Gbk, ReadsChineseText) {
  if (!can_convert()) GTEST_SKIP() << "the C library has no converter for GB 18030";
  // \xCF\xD4\xB4\xE6\xB2\xBB\xD7\xE3 is 显存不足.
  EXPECT_EQ(utf8_of_gbk("\xCF\xD4\xB4\xE6\xB2\xBB\xD7\xE3: CUDA out of memory"),
            "显存不足: CUDA out of memory");
  // A character that GBK has beyond GB 2312 (镕, E946) among others.
  EXPECT_EQ(utf8_of_gbk("\xD6\xEC\xE9\x46\xBB\xF9"), "朱镕基");
}

TEST(Gbk, LeavesWhatIsNoChineseText) {
  const char* const others[] = {
      "",
      "plain ASCII",
      "显存不足",                           // UTF-8
      "m\xE9moire insuffisante",            // Latin-1, é before a letter
      "Speicher f\xFCr das Ger\xE4t voll",  // Latin-1
      "\xCF\xD4\xB4",                       // cut in the middle of a character
      "\x80\xFF\xFF",                       // bytes that GBK has not
      "\xE9\x46 \xE9\x47 \xE9\x48",         // rare characters only
  };
  for (const char* text : others) EXPECT_EQ(utf8_of_gbk(text), std::nullopt) << text;
}

}  // namespace gbk_test
}  // namespace cufit::formats
