// SPDX-License-Identifier: Apache-2.0
#include "host/process/child_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"
#include "host/process/start_program.h"
#include "host/process/this_process.h"

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

// One child of several, whose pipes are read in turn.
class Watch {
 public:
  Watch(SpawnedProgram child, FileHandle out, FileHandle err, const ChildOptions& options,
        bool passes_on, Interrupts& interrupts)
      : child_(std::move(child)),
        out_(std::move(out)),
        err_(std::move(err)),
        options_(options),
        passes_on_(passes_on),
        interrupts_(interrupts),
        begin_(now()) {
    if (options.seconds > 0) deadline_ = begin_ + options.seconds;
  }

  // Until both pipes are closed and the child has ended.
  bool running() const { return !left_ && (!ended_ || out_.get() >= 0 || err_.get() >= 0); }

  void add_to(std::vector<pollfd>& polled) const {
    polled.push_back({out_.get(), POLLIN, 0});
    polled.push_back({err_.get(), POLLIN, 0});
  }

  // `polled`: what add_to() added.
  void turn(const pollfd* polled) {
    const bool out_read = polled[0].revents != 0 && take(out_, outcome_.out);
    const bool err_read = polled[1].revents != 0 && take(err_, outcome_.err, passes_on_);
    if (out_read || err_read) read_at_ = now();
    // A grandchild may keep the pipes open after the child's end: what it says is not waited for.
    constexpr double k_quiet_seconds = 0.2;
    if (ended_ && now() - std::max(read_at_, ended_at_) > k_quiet_seconds) left_ = true;
    if (!ended_) look_for_end();
    if (!ended_ && deadline_ > 0 && now() > deadline_) {
      outcome_.timed_out = outcome_.timed_out || interrupts_.caught() == 0;
      kill(child_.pid, SIGKILL);
    }
    if (!ended_ && now() - begin_ > ticks_ + 1) look_in();
  }

  // What the terminal sends goes to the whole group: the child has it already.
  void pass_on(int number, bool from_terminal) {
    if (ended_) return;
    if (!from_terminal) kill(child_.pid, number);
    deadline_ = now() + k_child_process_grace_seconds;
  }

  void end() {
    kill(child_.pid, SIGKILL);
    waitpid(child_.pid, nullptr, 0);
  }

  int start_error() { return child_.start_error(false); }
  ChildOutcome& outcome() { return outcome_; }

 private:
  void look_for_end() {
    int status = 0;
    rusage used{};
    if (wait4(child_.pid, &status, WNOHANG, &used) != child_.pid) return;
    ended_ = true;
    ended_at_ = now();
    outcome_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    outcome_.seconds = ended_at_ - begin_;
    outcome_.peak_bytes = static_cast<uint64_t>(used.ru_maxrss) << 10;
  }

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

  SpawnedProgram child_;
  FileHandle out_, err_;
  const ChildOptions& options_;
  bool passes_on_;
  Interrupts& interrupts_;
  ChildOutcome outcome_;
  double begin_;
  double deadline_ = 0;
  double ticks_ = 0;  // seconds since the begin
  double read_at_ = 0, ended_at_ = 0;
  bool ended_ = false, left_ = false;
};

void pass_on_signals(const FileHandle& signals, std::vector<Watch>& children,
                     Interrupts& interrupts) {
  signalfd_siginfo info{};
  while (read(signals.get(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    interrupts.remember(number);
    for (Watch& child : children) child.pass_on(number, info.ssi_code == SI_KERNEL);
  }
}

void watch_all(std::vector<Watch>& children, Interrupts& interrupts) {
  const FileHandle signals(
      signalfd(-1, &interrupts.awaited(), SFD_CLOEXEC | SFD_NONBLOCK));
  const auto running = [](const Watch& child) { return child.running(); };
  std::vector<pollfd> polled;
  while (std::any_of(children.begin(), children.end(), running)) {
    polled = {{signals.get(), POLLIN, 0}};
    for (const Watch& child : children) child.add_to(polled);
    poll(polled.data(), polled.size(), 50);
    if (polled[0].revents != 0) pass_on_signals(signals, children, interrupts);
    for (size_t i = 0; i < children.size(); ++i)
      if (children[i].running()) children[i].turn(&polled[1 + 2 * i]);
  }
}

// Error{io}: no process could be made.
Result<Watch> start_child(const ChildOptions& options, bool is_first, Interrupts& interrupts) {
  CUFIT_TRY(out, open_pipe());
  CUFIT_TRY(err, open_pipe());
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
  return Watch(std::move(child), std::move(out.read_end), std::move(err.read_end), options,
               options.pass_on && is_first, interrupts);
}

// execve says "No such file" of a script, too, whose interpreter is gone: of a venv that was moved.
Error not_started(const ChildOptions& options, int why) {
  const std::string& word = options.command[0];
  if (why == ENOENT) {
    std::string path = process_variable("PATH");
    for (const auto& [name, value] : options.variables)
      if (name == "PATH") path = value.value_or("");
    const FoundProgram found = find_program(word, {"PATH=" + path});
    const facts::StartFailure failure = start_failure(why, found.path);
    if (!found.path.empty() && failure.reason == "interpreter")
      return fail(Code::not_found, format("`{}`: its interpreter `{}` was not found",
                                          failure.program, failure.detail));
  }
  return fail(Code::not_found, format("`{}`: {}", word, std::strerror(why)));
}

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

Result<std::vector<ChildOutcome>> run_children(std::span<const ChildOptions> options,
                                               Interrupts& interrupts) {
  const auto cancelled = [&] {
    return fail(Code::cancelled, format("interrupted by signal {}", interrupts.caught()));
  };
  if (interrupts.caught() != 0) return cancelled();
  const Leftovers leftovers(std::any_of(
      options.begin(), options.end(), [](const ChildOptions& one) { return one.leave_none; }));
  std::vector<Watch> children;
  children.reserve(options.size());
  for (const ChildOptions& one : options) {
    Result<Watch> child = start_child(one, children.empty(), interrupts);
    if (!child) {
      for (Watch& started : children) started.end();
      return child.error();
    }
    children.push_back(std::move(*child));
  }
  watch_all(children, interrupts);
  std::vector<ChildOutcome> outcomes;
  for (size_t i = 0; i < children.size(); ++i) {
    if (const int why = children[i].start_error())
      return not_started(options[i], why);
    outcomes.push_back(std::move(children[i].outcome()));
  }
  if (interrupts.caught() != 0) return cancelled();
  return outcomes;
}

Result<ChildOutcome> run_child(const ChildOptions& options, Interrupts& interrupts) {
  CUFIT_TRY(all, run_children({&options, 1}, interrupts));
  return std::move(all.front());
}

}  // namespace cufit::host
