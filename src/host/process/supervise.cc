// SPDX-License-Identifier: Apache-2.0
#include "host/process/supervise.h"

#include "host/process/memory_kills.h"
#include "host/process/memory_sampler.h"
#include "host/process/spawn.h"
#include "host/process/start_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "base/format.h"
#include "host/driver/driver_calls.h"
#include "host/files/rlimit_fsize_guard.h"

namespace cufit::host {
namespace {

constexpr int k_supervise_passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// What the program's own children still write after its end is waited for this long.
constexpr double k_quiet_seconds = 0.2, k_drain_seconds = 2;
constexpr double k_sample_seconds = 0.25;  // of host memory

// One way of output: what comes from `from` goes to `to`.
struct Channel {
  int from = -1;     // our end; -1 = closed
  int program = -1;  // the program's end, closed here once it runs
  int to = -1;       // STDOUT_FILENO or STDERR_FILENO
  bool terminal = false;
  std::string pending;  // read and not yet written
};

void close_file(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

void keep_to_ourselves(int file) { (void)fcntl(file, F_SETFD, FD_CLOEXEC); }

bool open_terminal(int like, Channel& channel) {
  winsize size{};
  const bool sized = ioctl(like, TIOCGWINSZ, &size) == 0;
  if (openpty(&channel.from, &channel.program, nullptr, nullptr, sized ? &size : nullptr) != 0)
    return false;
  keep_to_ourselves(channel.from);
  keep_to_ourselves(channel.program);
  termios settings{};
  if (tcgetattr(channel.program, &settings) == 0) {
    cfmakeraw(&settings);  // no byte is changed on its way; the real terminal does that
    (void)tcsetattr(channel.program, TCSANOW, &settings);
  }
  channel.terminal = true;
  return true;
}

bool open_channel(int to, Channel& channel) {
  channel.to = to;
  if (isatty(to) && open_terminal(to, channel)) return true;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  channel.from = ends[0];
  channel.program = ends[1];
  return true;
}

// stdout and stderr lead to the same place: one channel keeps their order.
bool same_place() {
  struct stat out {
  }, err{};
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : k_supervise_passed_on) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGWINCH);
  return set;
}

class Supervision {
 public:
  Supervision(const Host& host, const SuperviseOptions& options)
      : host_(host), options_(options), awaited_(awaited_signals()) {}
  ~Supervision();
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;
  Result<facts::Supervised> run();

 private:
  Result<void> start();
  void loop();
  void take_signal();
  void reap();
  void take_output(Channel& channel);
  void write_output(Channel& channel);
  static pollfd wish_of(const Channel& channel);
  void keep(std::string_view bytes);
  void sample_host_memory(double now);
  int wait_milliseconds(double now) const;
  bool has_pending() const { return !out_.pending.empty() || !err_.pending.empty(); }
  bool open_channels() const { return out_.from >= 0 || err_.from >= 0 || has_pending(); }

  const Host& host_;
  const SuperviseOptions& options_;
  sigset_t awaited_, before_{};
  bool blocked_ = false;
  bool given_up_ = false;  // a signal asked for the end while output still waited for its reader
  Channel out_, err_;
  int signals_ = -1;
  std::optional<MemorySampler> sampler_;
  facts::Supervised result_;
  double begin_ = 0, ended_ = 0, last_output_ = 0, sampled_ = 0;
  void (*pipe_before_)(int) = SIG_DFL;
  FileLimit limit_;  // output that is passed on to a file
};

Supervision::~Supervision() {
  for (Channel* channel : {&out_, &err_}) {
    close_file(channel->from);
    close_file(channel->program);
  }
  close_file(signals_);
  if (!blocked_) return;
  signal(SIGPIPE, pipe_before_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Result<void> Supervision::start() {
  if (!open_channel(STDOUT_FILENO, out_)) return fail(Code::io, std::strerror(errno));
  if (!same_place() && !open_channel(STDERR_FILENO, err_))
    return fail(Code::io, std::strerror(errno));
  signals_ = signalfd(-1, &awaited_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) return fail(Code::io, std::strerror(errno));
  SpawnOptions program;
  program.command = options_.command;
  program.path = options_.program;
  program.environment = options_.variables;
  program.out = out_.program;
  program.err = err_.program >= 0 ? err_.program : out_.program;
  program.signal_with_parent = SIGTERM;  // without cufit nobody would read what it writes
  program.blocked = before_;
  program.before = [this] {
    signal(SIGPIPE, pipe_before_);
    limit_.set_back();
  };
  CUFIT_TRY(child, spawn_program(program));
  result_.pid = child.pid;
  close_file(out_.program);
  close_file(err_.program);
  if (const int why = child.start_error(true)) {
    waitpid(child.pid, nullptr, 0);
    result_.not_started = start_failure(why, options_.program);
  }
  return {};
}

void Supervision::keep(std::string_view bytes) {
  result_.output_bytes += bytes.size();
  result_.tail += bytes;
  if (result_.tail.size() > 2 * options_.tail_bytes)
    result_.tail.erase(0, result_.tail.size() - options_.tail_bytes);
}

void Supervision::take_output(Channel& channel) {
  char bytes[65536];
  const ssize_t got = read(channel.from, bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) return close_file(channel.from);  // a pseudo-terminal ends with EIO
  last_output_ = DriverCalls::now();
  channel.pending.assign(bytes, static_cast<size_t>(got));
  keep(channel.pending);
}

// As much as fits without waiting: a reader that has stopped must not stop the signals.
void Supervision::write_output(Channel& channel) {
  const ssize_t written =
      write(channel.to, channel.pending.data(), std::min<size_t>(channel.pending.size(), PIPE_BUF));
  if (written > 0) {
    channel.pending.erase(0, static_cast<size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    // Nobody reads any more: the program gets SIGPIPE, as it would without us.
    channel.pending.clear();
    close_file(channel.from);
  }
}

pollfd Supervision::wish_of(const Channel& channel) {
  if (!channel.pending.empty()) return {channel.to, POLLOUT, 0};
  return {channel.from, POLLIN, 0};
}

void Supervision::take_signal() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      reap();
      continue;
    }
    if (number == SIGWINCH) {
      winsize size{};
      for (const Channel* channel : {&out_, &err_})
        if (channel->terminal && channel->from >= 0 && ioctl(channel->to, TIOCGWINSZ, &size) == 0)
          (void)ioctl(channel->from, TIOCSWINSZ, &size);
      // The program may have been told by the terminal before the size was right.
      if (ended_ == 0) kill(result_.pid, SIGWINCH);
      continue;
    }
    const bool ends = number != SIGUSR1 && number != SIGUSR2;
    if (ends && ended_ == 0) result_.asked_to_end = true;
    if (ends && ended_ != 0) given_up_ = true;
    // What the terminal sends goes to the whole group: the program has it already.
    const bool from_terminal = info.ssi_code == SI_KERNEL;
    if (ended_ == 0 && !from_terminal) kill(result_.pid, number);
  }
}

void Supervision::reap() {
  int status = 0;
  if (ended_ != 0 || waitpid(result_.pid, &status, WNOHANG) != result_.pid) return;
  ended_ = DriverCalls::now();
  result_.seconds = ended_ - begin_;
  result_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result_.exit_code = result_.signal != 0 ? 128 + result_.signal : WEXITSTATUS(status);
  result_.host_memory_age_seconds = std::max(0.0, ended_ - sampled_);
  result_.kills_after = read_memory_kills(host_);
  if (!sampler_) return;
  sampler_->read_some();
  if (const MemorySample* fullest = fullest_of(sampler_->samples(), ended_)) {
    result_.memory = fullest->gpus;
    // A sample under way when it ended may be stamped a moment later.
    result_.memory_age_seconds = std::max(0.0, ended_ - fullest->seconds);
  }
  sampler_.reset();
}

void Supervision::sample_host_memory(double now) {
  if (ended_ != 0 || now - sampled_ < k_sample_seconds) return;
  if (const std::optional<facts::HostMemory> memory = read_host_memory(host_)) {
    result_.host_memory = memory;
    sampled_ = now;
  }
}

int Supervision::wait_milliseconds(double now) const {
  if (ended_ == 0 && result_.host_memory)
    return static_cast<int>(std::max(0.0, sampled_ + k_sample_seconds - now) * 1000) + 1;
  if (ended_ == 0 || has_pending()) return -1;
  const double quiet = std::max(ended_, last_output_) + k_quiet_seconds - now;
  const double left = std::min(quiet, ended_ + k_drain_seconds - now);
  return left <= 0 ? 0 : static_cast<int>(left * 1000) + 1;
}

void Supervision::loop() {
  while (ended_ == 0 || (open_channels() && !given_up_)) {
    const double now = DriverCalls::now();
    sample_host_memory(now);
    const int wait = wait_milliseconds(now);
    if (wait == 0) return;
    const int sampled = sampler_ ? sampler_->pipe() : -1;
    pollfd polled[] = {wish_of(out_), wish_of(err_), {signals_, POLLIN, 0}, {sampled, POLLIN, 0}};
    if (poll(polled, 4, wait) < 0) continue;
    // Output first: what was written before the end belongs before it.
    Channel* const channels[] = {&out_, &err_};
    for (int i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      if (channels[i]->pending.empty())
        take_output(*channels[i]);
      else
        write_output(*channels[i]);
    }
    if (polled[3].revents != 0 && sampler_) sampler_->read_some();
    if (polled[2].revents != 0) take_signal();
  }
}

Result<facts::Supervised> Supervision::run() {
  sigprocmask(SIG_BLOCK, &awaited_, &before_);
  pipe_before_ = signal(SIGPIPE, SIG_IGN);
  blocked_ = true;
  begin_ = DriverCalls::now();
  result_.kills_before = read_memory_kills(host_);
  if (Result<void> started = start(); !started) return started.error();
  if (result_.not_started) return std::move(result_);
  if (options_.sample_memory) sampler_.emplace(host_);
  loop();
  std::string& tail = result_.tail;
  if (tail.size() > options_.tail_bytes) tail.erase(0, tail.size() - options_.tail_bytes);
  if (tail.size() < result_.output_bytes) tail.erase(0, tail.find('\n') + 1);  // npos + 1 is 0
  return std::move(result_);
}

}  // namespace

Result<facts::Supervised> supervise(const Host& host, const SuperviseOptions& options) {
  return Supervision(host, options).run();
}

}  // namespace cufit::host
