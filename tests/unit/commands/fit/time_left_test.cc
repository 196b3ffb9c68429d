// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/time_left.h"

#include <gtest/gtest.h>

namespace cufit::commands {
namespace time_left_test {

TEST(TimeLeft, StepsOfTheFirstTraceTellOfBoth) {
  TimeLeft time;
  time.begin(3, false);
  time.saw(30, 0);
  EXPECT_FALSE(time.left());
  time.saw(50, 1);
  EXPECT_FALSE(time.left());  // how long a step takes is seen between two
  time.saw(60, 2);
  EXPECT_DOUBLE_EQ(time.left().value(), 20 + 80);  // two more steps, then the same again
  time.saw(65, 2);
  EXPECT_DOUBLE_EQ(time.left().value(), 15 + 80);
  time.saw(500, 2);  // longer than thought
  EXPECT_DOUBLE_EQ(time.left().value(), 500);
}

TEST(TimeLeft, ATraceThatNoneFollowsTellsOfItself) {
  TimeLeft time;
  time.begin(3, true);
  time.saw(50, 1);
  time.saw(60, 2);
  EXPECT_DOUBLE_EQ(time.left().value(), 20);
}

TEST(TimeLeft, ASecondTraceTakesWhatTheFirstTook) {
  TimeLeft time;
  time.begin(3, false);
  time.saw(80, 4);
  time.begin(3, true);
  EXPECT_DOUBLE_EQ(time.left().value(), 80);
  time.saw(30, 0);
  EXPECT_DOUBLE_EQ(time.left().value(), 50);
  time.saw(90, 3);
  EXPECT_FALSE(time.left());  // it takes longer, nobody knows how much
}

TEST(TracesLeft, TakeAsLongAsThoseBefore) {
  TracesLeft time;
  EXPECT_FALSE(time.left(4, 1, 0));
  time.took(10);
  time.took(20);
  EXPECT_DOUBLE_EQ(time.left(4, 1, 0).value(), 60);
  EXPECT_DOUBLE_EQ(time.left(4, 1, 5).value(), 55);
  EXPECT_DOUBLE_EQ(time.left(4, 1, 500).value(), 45);  // longer than thought
  EXPECT_DOUBLE_EQ(time.left(4, 2, 0).value(), 30);    // two side by side
  EXPECT_DOUBLE_EQ(time.left(3, 2, 0).value(), 30);
  EXPECT_DOUBLE_EQ(time.left(0, 2, 0).value(), 0);
}

}  // namespace time_left_test
}  // namespace cufit::commands
