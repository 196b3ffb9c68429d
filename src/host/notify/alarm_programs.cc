// SPDX-License-Identifier: Apache-2.0
#include "host/notify/alarm_programs.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "base/format.h"
#include "host/process/signal_pause.h"

namespace cufit::host {
namespace {

constexpr double k_kill_after_s = 5;

// A file in memory with these bytes: a program may read them or not, and nobody waits for it.
Result<FileHandle> file_of(const std::string& bytes) {
  FileHandle out(memfd_create("cufit-alarm", MFD_CLOEXEC));
  if (out.get() < 0) return fail(Code::io, format("memfd_create: {}", std::strerror(errno)));
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(out.get(), bytes.data() + written, bytes.size() - written);
    if (count < 0) return fail(Code::io, std::strerror(errno));
    written += static_cast<size_t>(count);
  }
  (void)lseek(out.get(), 0, SEEK_SET);
  return out;
}

}  // namespace

void AlarmPrograms::add(AlarmCall call) {
  // The first ones are kept: they are the cause.
  if (waiting_.size() == k_most_waiting) {
    if (!std::exchange(said_full_, true))
      failures_.push_back({call.command, "too many calls wait; the newest are dropped"});
    return;
  }
  waiting_.push_back(std::move(call));
}

void AlarmPrograms::start(const AlarmCall& call) {
  Result<FileHandle> input = file_of(call.input);
  if (!input) {
    failures_.push_back({call.command, input.error().what});
    return;
  }
  std::map<std::string, std::string> all(variables_.begin(), variables_.end());
  for (const auto& [name, value] : call.variables) all[name] = value;
  SpawnOptions options;
  options.command = {"sh", "-c", call.command};
  options.path = "/bin/sh";
  // All of them at once: with other threads about, none may be set after the fork.
  options.environment.emplace();
  for (const auto& [name, value] : all) options.environment->push_back(name + "=" + value);
  options.own_group = true;
  options.default_signals = true;
  options.out = STDERR_FILENO;  // stdout is cufit's data
  sigemptyset(&options.blocked);
  const int file = input->get();
  options.before = [file] { (void)dup2(file, STDIN_FILENO); };
  Result<SpawnedProgram> started = spawn_program(options);
  if (!started) {
    failures_.push_back({call.command, started.error().what});
    return;
  }
  running_.push_back({started->pid, call.command, running_seconds()});
}

std::vector<AlarmFailure> AlarmPrograms::attend() {
  const double now = running_seconds();
  for (size_t i = 0; i < running_.size();) {
    Running& one = running_[i];
    int status = 0;
    const pid_t ended = waitpid(one.pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) {
      const double over = now - one.begun - limit_s_;
      if (over >= 0 && !std::exchange(one.was_asked, true)) ::kill(-one.pid, SIGTERM);
      if (over >= k_kill_after_s && !std::exchange(one.was_killed, true)) ::kill(-one.pid, SIGKILL);
      ++i;
      continue;
    }
    // The shell ended; what it started may have ignored that.
    if (one.was_asked) ::kill(-one.pid, SIGKILL);
    if (one.was_asked)
      failures_.push_back({one.command, format("ended after {} s", limit_s_)});
    else if (ended > 0 && WIFSIGNALED(status))
      failures_.push_back({one.command, format("signal {}", WTERMSIG(status))});
    else if (ended > 0 && WEXITSTATUS(status) != 0)
      failures_.push_back({one.command, format("exit code {}", WEXITSTATUS(status))});
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  while (!waiting_.empty() && running_.size() < k_most_running) {
    start(waiting_.front());
    waiting_.pop_front();
  }
  if (waiting_.empty()) said_full_ = false;
  return std::exchange(failures_, {});
}

size_t AlarmPrograms::leave() {
  const size_t out = waiting_.size();
  waiting_.clear();
  running_.clear();
  return out;
}

}  // namespace cufit::host
