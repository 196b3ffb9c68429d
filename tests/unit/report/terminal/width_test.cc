// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/width.h"

#include <gtest/gtest.h>

namespace cufit::report {
namespace width_test {

using Lines = std::vector<std::string>;

TEST(Columns, CountsWhatATerminalShows) {
  struct Case {
    const char* text;
    int columns;
  };
  for (const Case& c :
       {Case{"", 0}, Case{"torch", 5}, Case{"驱动", 4}, Case{"驱动 580", 8}, Case{"e\u0301", 1},
        Case{"\u2713 ok", 4}, Case{"\u2717", 1}, Case{"，。", 4}, Case{"한글", 4}, Case{"ｶﾅ", 2},
        Case{"\U0001F680", 2}, Case{"\u200bx\ufeff", 1}, Case{"\xff\xfe", 2}, Case{"\u00e9", 1},
        Case{"\U00020000", 2}, Case{"\xe9\xa9", 2}}) {
    EXPECT_EQ(columns(c.text), c.columns) << c.text;
  }
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(wrap("the driver is too old", 10), (Lines{"the driver", "is too old"}));
  EXPECT_EQ(wrap("", 10), (Lines{""}));
  EXPECT_EQ(wrap("one\ntwo", 10), (Lines{"one", "two"}));
}

TEST(Wrap, KeepsAQuotedCommandWhole) {
  EXPECT_EQ(wrap("run `pip install torch` now", 12), (Lines{"run", "`pip install torch`", "now"}));
  EXPECT_EQ(wrap("run `pip install", 8),
            (Lines{"run `pip", "install"}));  // no closing quote: words
}

TEST(Wrap, BreaksBetweenWideCharactersButNotBeforeClosingPunctuation) {
  EXPECT_EQ(wrap("驱动太旧了", 6), (Lines{"驱动太", "旧了"}));
  EXPECT_EQ(wrap("驱动太，旧了", 6), (Lines{"驱动", "太，旧", "了"}));
  EXPECT_EQ(wrap("驱动（旧）", 6), (Lines{"驱动", "（旧）"}));
  EXPECT_EQ(wrap("见`a b`。好", 6), (Lines{"见", "`a b`。", "好"}));
  EXPECT_EQ(wrap("版本12.8太旧", 8), (Lines{"版本12.8", "太旧"}));
}

TEST(Wrap, LeavesALongWordWhole) {
  EXPECT_EQ(wrap("in /usr/lib/x86_64-linux-gnu/libcuda.so.1 it is", 10),
            (Lines{"in", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "it is"}));
}

TEST(Wrap, NeverPassesTheWidthWhereItCanBreak) {
  const std::string text =
      "PyTorch 2.11 在 H200 上可以运行，因为驱动 `580.159.04` 足够新；see the rule (in words).";
  for (int width = 20; width <= 100; ++width) {
    std::string joined;
    for (const std::string& line : wrap(text, width)) {
      EXPECT_LE(columns(line), width) << line;
      for (char c : line) joined += c == ' ' ? "" : std::string(1, c);
    }
    std::string expected;
    for (char c : text) expected += c == ' ' ? "" : std::string(1, c);
    EXPECT_EQ(joined, expected);  // nothing is lost
  }
}

TEST(Pad, FillsByColumns) {
  EXPECT_EQ(pad("驱动", 6), "驱动  ");
  EXPECT_EQ(pad("kernel", 3), "kernel");
}

TEST(Printable, TakesTheTeethOutOfTerminalCodes) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("a\r\nb\tc"), "a\\x0d\nb c");
  EXPECT_EQ(printable("x\u202ey"), "x\\u202ey");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // the one-byte CSI
  EXPECT_EQ(printable("\xff驱动"), "\xEF\xBF\xBD驱动");
}

TEST(Decode, RefusesOverlongAndSurrogates) {
  for (const char* bad :
       {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f", "\x80"}) {
    EXPECT_EQ(decode(bad, 0).value, 0xFFFDu) << bad;
    EXPECT_EQ(decode(bad, 0).length, 1u);
  }
}

}  // namespace width_test
}  // namespace cufit::report
