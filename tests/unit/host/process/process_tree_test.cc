// SPDX-License-Identifier: Apache-2.0
#include "host/process/process_tree.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "base/format.h"
#include "host/process/start_program.h"

namespace cufit::host {
namespace process_tree_test {

TEST(ProcessTree, TheStateOfAProcessWhateverItsNameHolds) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    (void)!::write(ready[1], "y", 1);
    ::pause();
    ::_exit(0);
  }
  char told = 0;
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  const ProcessState state = process_state(child);
  EXPECT_TRUE(state.state == 'S' || state.state == 'R') << state.state;
  EXPECT_EQ(state.parent, ::getpid());
  EXPECT_GE(state.start_ticks, process_state(0).start_ticks);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(process_state(child).state, 'Z');
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(process_state(child).state, 0);
  EXPECT_EQ(process_state(-1).state, 0);
  EXPECT_NE(pid_namespace(), 0u);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(ProcessTree, TheProgramOfACommandLine) {
  const std::string words = read_small("/proc/self/cmdline");
  const std::string program = words.substr(0, words.find('\0'));
  EXPECT_EQ(program_of_line(::getpid(), program + " --token secret"), program);
  EXPECT_EQ(program_of_line(::getpid(), "/opt/py/bin/python --token secret"), "/opt/py/bin/python");
  EXPECT_EQ(program_of_line(-1, "python"), "python");
  // Its path has a blank.
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sleep", "/a b/sleep", "60", nullptr);
    ::_exit(127);
  }
  const std::string path = format("/proc/{}/cmdline", child);
  while (!starts_with(read_small(path), "/a b/sleep") && process_state(child).state != 'Z')
    ::usleep(1000);
  EXPECT_EQ(program_of_line(child, "/a b/sleep 60"), "/a b/sleep");
  EXPECT_EQ(program_of_line(child, "/a b/other 60"), "/a");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(StartProgram, TheLineOfAnInterpreter) {
  EXPECT_EQ(interpreter_line("#!/usr/bin/env python3\nimport os\n"), "/usr/bin/env python3");
  EXPECT_EQ(interpreter_line("#! /bin/sh -e"), "/bin/sh -e");
  EXPECT_EQ(interpreter_line("#!\nx"), "");
  EXPECT_EQ(interpreter_line("#"), "");
  EXPECT_EQ(interpreter_line(""), "");
  EXPECT_EQ(interpreter_line("\x7f"
                             "ELF"),
            "");
}

}  // namespace process_tree_test
}  // namespace cufit::host
