// SPDX-License-Identifier: Apache-2.0
#include "formats/system/shell_commands.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "formats/system/sshd_config.h"

namespace cufit::formats {
namespace shell_commands_test {

// "2 a|b; 3 c|d": the line of each command's first word.
std::string all(const std::vector<ShellCommand>& commands) {
  std::vector<std::string> out;
  for (const ShellCommand& one : commands)
    out.push_back(std::to_string(one.lines.at(0)) + " " + join(one.words, "|"));
  return join(out, "; ");
}

TEST(ShellCommands, OfAScript) {
  EXPECT_EQ(all(read_shell_script("#!/bin/sh\n# it's; a comment\na 'b' \"c d\" && e | f\n")),
            "3 a|b|c|d; 3 e; 3 f");
  EXPECT_EQ(all(read_shell_script("a \\\n  b ''\nc#d 2>&1 &>x & e")),
            "1 a|b|; 3 c#d|2>&1|&>x; 3 e");
  EXPECT_EQ(all(read_shell_script("cat <<-'END' >x; y\nhidden; z\n\tEND\nb <<<word\n")),
            "1 cat|>x; 1 y; 4 b|word");
  EXPECT_EQ(all(read_shell_script("a $(b; c | d) e\n$(f\ng\n) h")),
            "1 a|$(b; c | d)|e; 4 $(f\ng\n)|h");
  EXPECT_EQ(all(read_shell_script("a $(b")), "1 a|$(b");
  EXPECT_EQ(all(read_shell_script("cat <<E\nnever ends")), "1 cat");
  EXPECT_EQ(all(read_shell_script("")), "");
}

TEST(ShellCommands, OfArguments) {
  EXPECT_EQ(all(read_commands({"bash", "-euo", "pipefail", "-c", "a; b", "c d"})),
            "0 bash|-euo|pipefail|-c; 1 a; 1 b|c|d");
  EXPECT_EQ(all(read_commands({"/bin/sh", "-lc", "--", "a && b"})), "0 /bin/sh|-lc|--; 1 a; 1 b");
  // No shell: the words are the program's.
  EXPECT_EQ(all(read_commands({"python", "-c", "a; b"})), "0 python|-c|a;|b");
  EXPECT_EQ(all(read_commands({})), "");
  EXPECT_EQ(read_commands({std::string(100000, ' '), std::string(400000, 'a')}).size(), 1u);
  std::string many;
  for (int i = 0; i < 60000; ++i) many += "a ";
  EXPECT_LE(read_commands({many, many})[0].words.size(), 20000u);
}

TEST(ShellCommands, WhatStartsNothing) {
  const auto nothing = [](std::string_view text) {
    return starts_nothing(read_shell_script(text).at(0).words);
  };
  for (const char* text : {"pip install a", "python3 -m pip install a", "A=1", "if ! pip show a",
                           "conda install a", "/usr/bin/git clone a", "sudo apt-get install a"})
    EXPECT_TRUE(nothing(text)) << text;
  for (const char* text : {"a", "A=1 exec b", "conda run -n x a", "uv run a", "python -m a"})
    EXPECT_FALSE(nothing(text)) << text;
}

TEST(ShellCommands, HowSshdIsStarted) {
  const auto of = [](std::string_view text) {
    const SshdStart start = parse_sshd_start(read_shell_script(text).at(0));
    std::string out = (start.starts ? "starts " : "") + start.file;
    for (const SshdSetting& one : start.settings) out += " " + one.keyword + "=" + one.value;
    return out;
  };
  EXPECT_EQ(of("exec /usr/sbin/sshd -D -e -p2222"), "starts  port=2222");
  EXPECT_EQ(of("sshd -Dp ${PORT:-2200} -f /a -h key -o 'UsePAM no' -oPort=9"),
            "starts /a port=2200 usepam=no port=9");
  EXPECT_EQ(of("service ssh start"), "starts ");
  EXPECT_EQ(of("mkdir -p /run/sshd"), "");
  EXPECT_EQ(of("apt-get install sshd"), "");
  EXPECT_EQ(of("sshd -p"), "starts ");
}

}  // namespace shell_commands_test
}  // namespace cufit::formats
