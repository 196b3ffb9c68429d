// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

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

TEST(ShellWord, WritesByNumbersWhatAPrinterWouldChange) {
  EXPECT_EQ(shell_argument("a\x1bz"), R"sh('a'"$(printf '\033')"'z')sh");
  EXPECT_EQ(shell_argument("a\x1b\x07"), R"sh('a'"$(printf '\033\007')"'')sh");
  EXPECT_EQ(shell_argument("a`b"), R"sh('a'"$(printf '\140')"'b')sh");
  EXPECT_EQ(shell_argument("\xff"), R"sh(''"$(printf '\377')"'')sh");
  // From right to left; a beginning of a sequence in one character.
  EXPECT_EQ(shell_argument("\xe2\x80\xae"), R"sh(''"$(printf '\342\200\256')"'')sh");
  EXPECT_EQ(shell_argument("\xc2\x9b"), R"sh(''"$(printf '\302\233')"'')sh");
}

// What /bin/sh makes of it.
std::string read_by_shell(const std::string& word) {
  const std::string command = "printf %s. " + word;
  FILE* shell = ::popen(command.c_str(), "r");
  if (shell == nullptr) return {};
  std::string out;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) out += static_cast<char>(c);
  return ::pclose(shell) == 0 && !out.empty() ? out.substr(0, out.size() - 1) : std::string();
}

TEST(ShellWord, EveryByteComesBackFromTheShell) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    all += c;
    for (const std::string& text : {std::string(1, c), std::string("-a") + c, c + std::string("b"),
                                    std::string("x") + c + c + "1"}) {
      const std::string word = shell_argument(text);
      ASSERT_EQ(read_by_shell(word), text) << byte << ": " << word;
      for (const char each : word)
        EXPECT_TRUE(static_cast<unsigned char>(each) >= 0x20 || each == '\n') << byte;
    }
  }
  EXPECT_EQ(read_by_shell(shell_argument(all)), all);
}

}  // namespace shell_word_test
}  // namespace cufit
