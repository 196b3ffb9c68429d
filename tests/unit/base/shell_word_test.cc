// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace cufit {
namespace shell_word_test {

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("run/trace-1.pkl.gz"), "run/trace-1.pkl.gz");
  EXPECT_EQ(shell_word("/tmp/显存.pickle"), "/tmp/显存.pickle");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word("-x.pkl"), "./-x.pkl");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\nb"), "'a\nb'");
}

}  // namespace shell_word_test
}  // namespace cufit
