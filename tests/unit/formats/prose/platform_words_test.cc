// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/platform_words.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace platform_words_test {

TEST(PlatformWords, PathsPromptsAndTools) {
  for (const char* line :
       {"PS C:\\Users\\me> pip list", "(venv) D:\\sd> python x.py", "| 0 RTX 3060  WDDM | 00",
        "torch-2.3.0-cp310-cp310-win_amd64.whl", "OSError: [WinError 126] x"})
    EXPECT_EQ(implied_system(line), "Windows") << line;
  for (const char* line : {"/usr/lib/x.so", "File \"/home/u/t.py\"", "sudo apt install x"})
    EXPECT_EQ(implied_system(line), "Linux") << line;
  for (const char* line : {"torch 2.3.0", "abc:\\n", "https://x.y/z", ""})
    EXPECT_EQ(implied_system(line), "") << line;
}

TEST(PlatformWords, TheDriverInChinese) {
  const auto first = [](std::string_view line) {
    const auto all = chinese_driver_numbers(line);
    return all.empty() ? std::string_view() : all[0];
  };
  EXPECT_EQ(first("显卡 RTX 3060，驱动版本 536.67"), "536.67");
  EXPECT_EQ(first("驱动：550.54.14。"), "550.54.14");
  EXPECT_EQ(first("显卡驱动536.67，win11"), "536.67");
  EXPECT_EQ(first("驱动程序版本号为 470.82.01）"), "470.82.01");
  EXPECT_EQ(first("需要驱动 525.60 以上"), "");
  EXPECT_EQ(first("驱动 525.60 以上"), "");
  EXPECT_EQ(first("驱动装好了，torch 2.3.0"), "");
  EXPECT_EQ(first("驱动 2.3.0"), "");
}

}  // namespace platform_words_test
}  // namespace cufit::formats
