// SPDX-License-Identifier: Apache-2.0
#include "commands/self/docs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::commands {
namespace docs_test {

struct Request {
  std::vector<std::string> env, gpus;
  std::string from, topic;
  std::optional<std::string> fail_on;
  bool verbose = false;
};

constexpr Option k_doctor[] = {
    option<&Request::env>("--env", "DIR"),
    option<&Request::from>("--from", "FILE"),
    option<&Request::gpus>("--gpu", "NAME|CC"),
    option<&Request::fail_on>("--fail-on", "LEVEL", "note warning error"),
    option<&Request::verbose>("-v,--verbose"),
};
constexpr Option k_self[] = {option<&Request::topic>("TOPIC", "", "man completions licenses")};
const Command k_commands[] = {
    {"doctor", k_doctor}, {"self", k_self}, {"mem replay", k_doctor}, {"secret", {}, true}};

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// Feeds `text` to a program through a file; its exit code and everything that it printed.
std::pair<int, std::string> feed(const std::string& command, const std::string& text) {
  std::string path = ::testing::TempDir() + "cufit-docs-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << text;
  std::string output;
  FILE* pipe = popen((command + " " + path + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (size_t got; pipe && (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    output.append(buffer, got);
  int status = pipe ? pclose(pipe) : -1;
  std::remove(path.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

TEST(ManPage, NamesEveryCommandAndOption) {
  std::string page = man_page(k_commands, knowledge::Knowledge::builtin());
  for (const char* part :
       {".TH CUFIT 1", ".SS \"cufit doctor\"", "\\fB\\-\\-env\\fR \\fIDIR\\fR ...",
        "\\fB\\-v\\fR, \\fB\\-\\-verbose\\fR", "one of \\fBnote, warning, error\\fR",
        "\\fBcufit self\\fR [\\fIOPTION\\fR...] [\\fITOPIC\\fR]", ".SH \"EXIT STATUS\""}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  }
  EXPECT_EQ(page.find("secret"), std::string::npos);
  for (std::string_view line : split_lines(page)) {  // no text may become a request by accident
    if (!line.empty() && line[0] == '.') {
      EXPECT_TRUE(starts_with(line, ".TH") || starts_with(line, ".SH") ||
                  starts_with(line, ".SS") || line == ".TP" || line == ".nf" || line == ".fi")
          << line;
    }
    EXPECT_NE(line.empty() ? ' ' : line[0], '\'');
  }
}

TEST(ManPage, GroffHasNothingToSay) {
  if (!installed("groff")) GTEST_SKIP() << "groff is not installed";
  auto [code, output] =
      feed("groff -man -Tutf8 -ww -z", man_page(k_commands, knowledge::Knowledge::builtin()));
  EXPECT_EQ(code, 0);
  EXPECT_EQ(output, "");
}

TEST(Completions, OfEveryShellParse) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::string text = completions(shell, k_commands, knowledge::Knowledge::builtin());
    EXPECT_NE(text.find("doctor"), std::string::npos);
    EXPECT_NE(text.find("verbose"), std::string::npos);
    if (!installed(shell)) continue;
    auto [code, output] = feed(std::string(shell) + " -n", text);
    EXPECT_EQ(code, 0) << shell << ": " << output;
  }
  EXPECT_EQ(completions("tcsh", k_commands, knowledge::Knowledge::builtin()), "");
}

TEST(Completions, BashCompletes) {
  if (!installed("bash")) GTEST_SKIP() << "bash is not installed";
  struct Case {
    const char* words;
    const char* expected;
  };
  for (const Case& c :
       {Case{"cufit do", "doctor\n"}, Case{"cufit doctor --fail-on w", "warning\n"},
        Case{"cufit doctor --fa", "--fail-on\n"}, Case{"cufit self co", "completions\n"},
        Case{"cufit doctor --lang z", "zh\n"}, Case{"cufit me", "mem\n"},
        Case{"cufit doctor --gpu rtx\\\\\\ 3060\\\\\\ t", "RTX\\ 3060\\ Ti\n"},
        Case{"cufit doctor --gpu A100X", "A100X\n"}, Case{"cufit mem r", "replay\n"},
        Case{"cufit mem replay --fail-on w", "warning\n"}}) {
    std::string script =
        completions("bash", k_commands, knowledge::Knowledge::builtin()) + "COMP_WORDS=(" +
        c.words + ")\n" +
        "COMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_cufit\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    EXPECT_EQ(feed("bash", script).second, c.expected) << c.words;
  }
}

}  // namespace docs_test
}  // namespace cufit::commands
