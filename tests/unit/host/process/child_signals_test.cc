// SPDX-License-Identifier: Apache-2.0
// Which signals run_child passes on. What the terminal sends goes to the whole process group: the
// child has it already, and a second Ctrl-C makes many programs give up their orderly end. What
// somebody else sends to cufit alone is passed on.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "host/process/child_process.h"

namespace cufit::host {
namespace child_signals_test {

// In a session of its own, so that the terminal's signals do not reach it: what arrives has been
// passed on. It says "ready", then "got" or, a second later, "nothing".
constexpr const char* k_child =
    "trap 'echo got; exit' INT TERM; echo ready; i=0;"
    "while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; echo nothing";

// A process on a new terminal that does as `cufit` does while a child of its works.
class OnTerminal {
 public:
  OnTerminal() : pid_(forkpty(&terminal_, nullptr, nullptr, nullptr)) {
    if (pid_ != 0) return;
    // Who runs the tests in the background may have them ignored, and a shell traps nothing then.
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
    Interrupts interrupts;
    ChildOptions options;
    options.command = {"setsid", "sh", "-c", k_child};
    options.pass_on = true;
    options.seconds = 60;
    const Result<ChildOutcome> outcome = run_child(options, interrupts);
    _exit(!outcome && outcome.error().code == Code::cancelled ? 130 : 1);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  ~OnTerminal() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(terminal_);
  }

  bool started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void type(char key) const { ASSERT_EQ(write(terminal_, &key, 1), 1); }

  // What came on the terminal until `text` did, or all where it never does.
  std::string read_until(const std::string& text) const {
    std::string out;
    char bytes[256];
    pollfd polled{terminal_, POLLIN, 0};
    while (out.find(text) == std::string::npos && poll(&polled, 1, 60'000) == 1) {
      const ssize_t count = read(terminal_, bytes, sizeof bytes);
      if (count <= 0) break;
      out.append(bytes, static_cast<size_t>(count));
    }
    return out;
  }
  int exit_code() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    close(terminal_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int terminal_ = -1;
  pid_t pid_;
};

TEST(ChildSignals, OfTheTerminalAreNotSentTwice) {
  OnTerminal cufit;
  if (!cufit.started()) GTEST_SKIP() << "no pseudo-terminal can be opened here";
  ASSERT_NE(cufit.read_until("ready").find("ready"), std::string::npos);
  cufit.type('\x03');  // Ctrl-C
  const std::string said = cufit.read_until("nothing");
  EXPECT_NE(said.find("nothing"), std::string::npos) << said;
  EXPECT_EQ(said.find("got"), std::string::npos) << said;
  EXPECT_EQ(cufit.exit_code(), 130);
}

TEST(ChildSignals, OfOthersArePassedOn) {
  for (const int number : {SIGINT, SIGTERM}) {
    OnTerminal cufit;
    if (!cufit.started()) GTEST_SKIP() << "no pseudo-terminal can be opened here";
    ASSERT_NE(cufit.read_until("ready").find("ready"), std::string::npos);
    ASSERT_EQ(kill(cufit.pid(), number), 0);
    const std::string said = cufit.read_until("got");
    EXPECT_NE(said.find("got"), std::string::npos) << number << " " << said;
    EXPECT_EQ(cufit.exit_code(), 130) << number;
  }
}

}  // namespace child_signals_test
}  // namespace cufit::host
