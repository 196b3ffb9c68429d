// SPDX-License-Identifier: Apache-2.0
#include "report/pattern_text.h"

#include <gtest/gtest.h>

namespace cufit::report {
namespace pattern_text_test {

TEST(PatternText, ReadsAsTheMessageThatItFinds) {
  struct Case {
    const char *pattern, *text;
  };
  for (const Case& one : {
           Case{R"(CUDA\s+out\s+of\s+memory)", "CUDA out of memory"},
           Case{R"(\bXid:\s+79\b)", "Xid: 79"},
           Case{R"(capability\s+sm_7[02]\s+is\s+not\s+compatible)",
                "capability sm_7N is not compatible"},
           Case{R"(drivers?.{0,40}(?:not|never)\s+(?:be\s+)?found)", "driver...not found"},
           Case{R"(libcudart\.so\.\d+(?:\.\d+)?)", "libcudart.so.N"},
           Case{R"(^total\s*=\s*\d{14,}$)", "total = N"},
           Case{R"([^\n]{0,40}Error\s+\S+\s+\w*:)", "Error ...:"},
           Case{R"(\x22torch\x22 isn.t here)", "\"torch\" isn't here"},
           Case{R"(a\|b \(c\))", "a|b (c)"},
           Case{R"((没有?|未)安装)", "没安装"},
       }) {
    EXPECT_EQ(pattern_text(one.pattern), one.text) << one.pattern;
  }
}

TEST(PatternText, EndsOnWhatIsNoPattern) {
  for (const char* text : {"", "(", "(?", "[", "[^", "a\\", "a{", "\\x", "(a|", ")"})
    EXPECT_LE(pattern_text(text).size(), 4u) << text;
}

}  // namespace pattern_text_test
}  // namespace cufit::report
