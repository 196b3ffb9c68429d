// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <gtest/gtest.h>

namespace cufit {
namespace duration_test {

TEST(Duration, SecondsMinutesHoursDays) {
  EXPECT_EQ(parse_duration("90"), 90u);
  EXPECT_EQ(parse_duration("90s"), 90u);
  EXPECT_EQ(parse_duration("30m"), 1800u);
  EXPECT_EQ(parse_duration("2h"), 7200u);
  EXPECT_EQ(parse_duration("1d"), 86400u);
  EXPECT_EQ(parse_duration("0"), 0u);
  for (const char* text :
       {"", "m", "-1", "1.5h", "1 h", "2h30m", "3x", "99999999999999999999", "99999d", "0x10"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Duration, IsWrittenAsAClock) {
  EXPECT_EQ(format_duration(7), "0:07");
  EXPECT_EQ(format_duration(723), "12:03");
  EXPECT_EQ(format_duration(90010), "25:00:10");
}

}  // namespace duration_test
}  // namespace cufit
