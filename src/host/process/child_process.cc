// SPDX-License-Identifier: Apache-2.0
#include "host/process/child_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

constexpr size_t k_child_process_keep_bytes = 256u << 10;
constexpr double k_child_process_grace_seconds = 15;  // for a child that was asked to end

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void keep(std::string& text, const char* bytes, size_t count) {
  text.append(bytes, count);
  if (text.size() > 2 * k_child_process_keep_bytes)
    text.erase(0, text.size() - k_child_process_keep_bytes);
}

// While one lives, processes whose parent ends become cufit's own children, so that they can be
// found; at its end they are asked to end and, two seconds later, made to.
class Leftovers {
 public:
  explicit Leftovers(bool wanted) : wanted_(wanted) {
    if (wanted_) prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Leftovers() {
    if (!wanted_) return;
    constexpr double k_seconds = 2;
    const double begin = now();
    int number = SIGTERM;
    while (waitpid(-1, nullptr, WNOHANG) >= 0) {
      for (const pid_t pid : processes_from(getpid()))
        if (pid != getpid()) kill(pid, number);
      if (now() - begin > k_seconds) number = SIGKILL;
      if (now() - begin > 2 * k_seconds) break;  // one that no signal reaches
      const timespec pause{0, 10'000'000};
      nanosleep(&pause, nullptr);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

 private:
  bool wanted_;
};

class Watch {
 public:
  Watch(pid_t child, const ChildOptions& options, Interrupts& interrupts)
      : child_(child), interrupts_(interrupts), options_(options), begin_(now()) {
    if (options.seconds > 0) deadline_ = begin_ + options.seconds;
    signals_.reset(signalfd(-1, &interrupts.awaited(), SFD_CLOEXEC | SFD_NONBLOCK));
  }

  // Until both pipes are closed and the child has ended.
  void run(FileHandle& out, FileHandle& err, ChildOutcome& outcome) {
    int status = 0;
    bool ended = false;
    while (!ended || out.get() >= 0 || err.get() >= 0) {
      pollfd polled[3] = {
          {out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      poll(polled, 3, ended ? 200 : 50);
      const bool out_read = polled[0].revents != 0 && take(out, outcome.out);
      const bool err_read = polled[1].revents != 0 && take(err, outcome.err, options_.pass_on);
      if (polled[2].revents != 0) pass_on_signals();
      // A grandchild may keep the pipes open after the child's end: what it says is not waited for.
      if (ended && !out_read && !err_read) break;
      if (!ended && waitpid(child_, &status, WNOHANG) == child_) ended = true;
      if (!ended && deadline_ > 0 && now() > deadline_) {
        outcome.timed_out = outcome.timed_out || interrupts_.caught() == 0;
        kill(child_, SIGKILL);
      }
      if (!ended && now() - begin_ > ticks_ + 1) look_in();
    }
    outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  void look_in() {
    ticks_ = now() - begin_;
    if (options_.tick) options_.tick(ticks_);
    if (options_.gives_up && deadline_ == 0 && options_.gives_up(ticks_)) deadline_ = now();
  }

  static bool take(FileHandle& end, std::string& text, bool pass_on = false) {
    char bytes[16384];
    const ssize_t count = read(end.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) {
      end.reset();
      return false;
    }
    keep(text, bytes, static_cast<size_t>(count));
    if (pass_on) (void)!write(STDERR_FILENO, bytes, static_cast<size_t>(count));
    return true;
  }

  void pass_on_signals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      interrupts_.remember(number);
      // What the terminal sends goes to the whole group: the child has it already.
      if (info.ssi_code != SI_KERNEL) kill(child_, number);
      deadline_ = now() + k_child_process_grace_seconds;
    }
  }

  pid_t child_;
  Interrupts& interrupts_;
  const ChildOptions& options_;
  FileHandle signals_;
  double begin_;
  double deadline_ = 0;
  double ticks_ = 0;  // seconds since the begin
};

}  // namespace

Interrupts::Interrupts() {
  sigemptyset(&awaited_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&awaited_, number);
  sigprocmask(SIG_BLOCK, &awaited_, &before_);
}

Interrupts::~Interrupts() {
  caught();  // taken, so that it does not end the process in the middle of its last words
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Interrupts::caught() {
  const timespec at_once{0, 0};
  for (int number = sigtimedwait(&awaited_, nullptr, &at_once); number > 0;
       number = sigtimedwait(&awaited_, nullptr, &at_once))
    remember(number);
  return first_;
}

void Interrupts::remember(int number) {
  if (first_ == 0) first_ = number;
}

Result<ChildOutcome> run_child(const ChildOptions& options, Interrupts& interrupts) {
  const auto cancelled = [&] {
    return fail(Code::cancelled, format("interrupted by signal {}", interrupts.caught()));
  };
  if (interrupts.caught() != 0) return cancelled();
  CUFIT_TRY(out, open_pipe());
  CUFIT_TRY(err, open_pipe());
  const Leftovers leftovers(options.leave_none);
  SpawnOptions start;
  start.command = options.command;
  start.variables = options.variables;
  start.folder = options.folder;
  start.empty_input = true;
  start.out = (options.pass_on ? err : out).write_end.get();
  start.err = options.show ? -1 : err.write_end.get();
  start.signal_with_parent = SIGTERM;
  start.blocked = interrupts.before();
  CUFIT_TRY(child, spawn_program(start));
  for (Pipe* pipe : {&out, &err}) pipe->write_end.reset();
  ChildOutcome outcome;
  Watch(child.pid, options, interrupts).run(out.read_end, err.read_end, outcome);
  if (const int why = child.start_error(false))
    return fail(Code::not_found, format("`{}`: {}", options.command[0], std::strerror(why)));
  if (interrupts.caught() != 0) return cancelled();
  return outcome;
}

}  // namespace cufit::host
