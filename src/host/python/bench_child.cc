// SPDX-License-Identifier: Apache-2.0
#include "host/python/bench_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/driver/driver_calls.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_bench_line = 64u << 10, k_bench_errors = 16u << 10;
constexpr int k_bench_turn_ms = 50;
constexpr double k_bench_grace_seconds = 2;  // for one that sits in the driver

std::string last_words_of_bench(std::string_view text) {
  text = trim(text);
  return formats::printable(text.substr(text.rfind('\n') + 1), 300);
}

}  // namespace

Result<ScriptFolder> BenchChild::make_folder() {
  CUFIT_TRY(folder, ScriptFolder::make("bench", "", {}));
  if (Result<void> added = folder.add("bench.py", bench_program()); !added) return added.error();
  return folder;
}

Result<BenchChild> BenchChild::start(const ScriptFolder& folder, const std::string& python,
                                     const std::vector<std::string>& variables) {
  CUFIT_TRY(in, open_pipe());
  CUFIT_TRY(out, open_pipe());
  CUFIT_TRY(err, open_pipe());
  SpawnOptions options;
  options.command = {python, folder.path() + "/bench.py"};
  options.path = python;
  options.environment = variables;
  options.in = in.read_end.get();
  options.out = out.write_end.get();
  options.err = err.write_end.get();
  options.signal_with_parent = SIGKILL;
  options.own_group = true;  // so that what it starts ends with it
  options.default_signals = true;
  CUFIT_TRY(program, spawn_program(options));
  for (const int file : {in.write_end.get(), out.read_end.get(), err.read_end.get()})
    (void)fcntl(file, F_SETFL, O_NONBLOCK);
  BenchChild child(std::move(program), std::move(in.write_end), std::move(out.read_end),
                   std::move(err.read_end));
  child.name_ = python;
  return child;
}

BenchChild::BenchChild(SpawnedProgram program, FileHandle in, FileHandle out, FileHandle err)
    : program_(std::move(program)),
      in_(std::move(in)),
      out_(std::move(out)),
      err_(std::move(err)) {}

BenchChild::BenchChild(BenchChild&& other) noexcept
    : program_{std::exchange(other.program_.pid, -1), std::move(other.program_.failure)},
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      buffer_(std::move(other.buffer_)),
      said_(std::move(other.said_)),
      name_(std::move(other.name_)) {}

BenchChild::~BenchChild() { end(); }

// One that sits in the kernel is left behind rather than waited for.
void BenchChild::end() {
  if (program_.pid <= 0) return;
  kill(-program_.pid, SIGKILL);
  kill(program_.pid, SIGKILL);  // in case it did not get to make its group
  const double limit = DriverCalls::now() + k_bench_grace_seconds;
  while (waitpid(program_.pid, nullptr, WNOHANG) == 0 && DriverCalls::now() < limit) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  program_.pid = -1;
}

// Its stdout is closed: it has ended, or soon will.
std::string BenchChild::how_it_ended() {
  read_errors();
  const std::string words = last_words_of_bench(said_);
  if (program_.pid <= 0) return words;
  int status = 0;
  const double limit = DriverCalls::now() + k_bench_grace_seconds;
  pid_t ended = 0;
  while ((ended = waitpid(program_.pid, &status, WNOHANG)) == 0 && DriverCalls::now() < limit) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  if (ended <= 0) {
    end();
    return words;
  }
  kill(-program_.pid, SIGKILL);
  program_.pid = -1;
  if (const int why = program_.start_error(false))
    return format("`{}`: {}", name_, std::strerror(why));
  const std::string how = WIFSIGNALED(status)
                              ? format("Python was ended by signal {}", WTERMSIG(status))
                              : format("Python ended with status {}", WEXITSTATUS(status));
  return words.empty() ? how : how + ": " + words;
}

// SIGPIPE of a process that is gone is not cufit's end.
bool BenchChild::write_line(std::string text) {
  text += '\n';
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigprocmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t count = write(in_.get(), text.data(), text.size());
  const timespec at_once{0, 0};
  if (count < 0 && errno == EPIPE) sigtimedwait(&pipe_signal, nullptr, &at_once);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return count == static_cast<ssize_t>(text.size());  // shorter than a pipe's room
}

void BenchChild::read_errors() {
  char bytes[4096];
  for (int i = 0; i < 64; ++i) {  // one that never stops would keep cufit here
    const ssize_t count = read(err_.get(), bytes, sizeof bytes);
    if (count <= 0) return;
    said_.append(bytes, static_cast<size_t>(count));
    if (said_.size() > 2 * k_bench_errors) said_.erase(0, said_.size() - k_bench_errors);
  }
}

// False: there is no more to come.
bool BenchChild::read_some() {
  char bytes[16384];
  const ssize_t count = read(out_.get(), bytes, sizeof bytes);
  if (count > 0) buffer_.append(bytes, static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

BenchReply BenchChild::ask(const std::string& request, double seconds, Interrupts& interrupts,
                           const std::function<void()>& idle) {
  using How = BenchReply::How;
  buffer_.clear();
  if (program_.pid <= 0 || !write_line(request)) return {How::ended, how_it_ended()};
  const double limit = DriverCalls::now() + seconds;
  bool open = true;
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos)
      return {How::answered, buffer_.substr(0, end)};
    if (buffer_.size() > k_most_bench_line) return end(), BenchReply{How::garbage, {}};
    if (!open) return {How::ended, how_it_ended()};
    if (interrupts.caught() != 0) return {How::cancelled, {}};
    if (DriverCalls::now() > limit) return end(), BenchReply{How::late, {}};
    pollfd polled[2] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
    poll(polled, 2, k_bench_turn_ms);
    read_errors();
    if (polled[0].revents != 0) open = read_some();
    if (idle) idle();
  }
}

}  // namespace cufit::host
