// SPDX-License-Identifier: Apache-2.0
#include "host/process/attend.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "host/process/spawn.h"
#include "host/process/start_program.h"

namespace cufit::host {
namespace {

constexpr int k_attend_passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// While it lives, the signals wait to be taken one by one.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int number : k_attend_passed_on) sigaddset(&set_, number);
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  const sigset_t& set() const { return set_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t set_, before_;
};

// Waits for the end; returns the status of waitpid.
int wait_for(pid_t pid, const sigset_t& set) {
  int status = 0;
  for (;;) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid || (got < 0 && errno != EINTR)) return status;
    siginfo_t info{};
    const int number = sigwaitinfo(&set, &info);
    // What the terminal sends goes to the whole group: the program has it already.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(pid, number);
  }
}

}  // namespace

Result<AttendedRun> attend(const std::string& path, const std::vector<std::string>& command,
                           const std::vector<std::string>& variables) {
  HeldSignals signals;
  SpawnOptions options;
  options.command = command;
  options.path = path;
  options.environment = variables;
  options.signal_with_parent = SIGTERM;
  options.blocked = signals.before();
  CUFIT_TRY(child, spawn_program(options));
  AttendedRun out;
  if (const int why = child.start_error(true)) {
    waitpid(child.pid, nullptr, 0);
    out.not_started = start_failure(why, path);
    out.exit_code = out.not_started->exit_code;
    return out;
  }
  const int status = wait_for(child.pid, signals.set());
  out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  out.exit_code = out.signal != 0 ? 128 + out.signal : WEXITSTATUS(status);
  // One that came last is not for what follows.
  timespec none{};
  while (sigtimedwait(&signals.set(), nullptr, &none) > 0) {
  }
  return out;
}

}  // namespace cufit::host
