// SPDX-License-Identifier: Apache-2.0
#include "host/fleet/fan_out.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/format.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

constexpr size_t k_fan_out_error_bytes = 4096;
constexpr double k_fan_out_grace_seconds = 3;  // for a program that was asked to end

double fan_out_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Running {
  FanOutAnswer* answer = nullptr;
  SpawnedProgram program;
  FileHandle out, err;
  double deadline = 0;
  bool ended = false;
  int status = 0;
};

class FanOut {
 public:
  FanOut(const std::vector<FanOutTask>& tasks, const FanOutOptions& options, Interrupts& interrupts)
      : tasks_(tasks), options_(options), interrupts_(interrupts), answers_(tasks.size()) {}
  // What still runs is asked to end (srun gives its nodes back then), and made to.
  ~FanOut() {
    for (const auto& one : running_) end(*one, SIGTERM);
    const double last = fan_out_now() + k_fan_out_grace_seconds;
    while (fan_out_now() < last && some_runs()) {
      const timespec pause{0, 10'000'000};
      nanosleep(&pause, nullptr);
    }
    for (const auto& one : running_) end(*one, SIGKILL);
    for (const auto& one : running_)
      if (!one->ended) waitpid(one->program.pid, &one->status, 0);
  }
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  Result<std::vector<FanOutAnswer>> run() {
    while (next_ < tasks_.size() || !running_.empty()) {
      while (next_ < tasks_.size() && running_.size() < options_.at_once) start(next_++);
      wait_for_words();
      for (const auto& one : running_) look_after(*one);
      const size_t before = running_.size();
      std::erase_if(running_, [](const auto& one) {
        return one->ended && one->out.get() < 0 && one->err.get() < 0;
      });
      done_ += before - running_.size();
      if (options_.progress && before != running_.size()) options_.progress(done_);
      if (interrupts_.caught() != 0)
        return fail(Code::cancelled, format("interrupted by signal {}", interrupts_.caught()));
    }
    return std::move(answers_);
  }

 private:
  bool some_runs() {
    bool some = false;
    for (const auto& one : running_) {
      if (!one->ended && waitpid(one->program.pid, &one->status, WNOHANG) == one->program.pid)
        one->ended = true;
      some = some || !one->ended;
    }
    return some;
  }

  void start(size_t index) {
    FanOutAnswer& answer = answers_[index];
    answer.name = tasks_[index].name;
    auto one = std::make_unique<Running>();
    one->answer = &answer;
    Result<Pipe> out = open_pipe(), err = open_pipe();
    if (!out || !err) {
      answer.start_error = (out ? err : out).error().what;
      ++done_;
      return;
    }
    SpawnOptions options;
    options.command = tasks_[index].command;
    options.empty_input = true;
    options.out = out->write_end.get();
    options.err = err->write_end.get();
    options.signal_with_parent = SIGTERM;
    options.own_group = true;  // what it starts is ended with it
    options.blocked = interrupts_.before();
    Result<SpawnedProgram> program = spawn_program(options);
    if (!program) {
      answer.start_error = program.error().what;
      ++done_;
      return;
    }
    one->program = std::move(*program);
    one->out = std::move(out->read_end);
    one->err = std::move(err->read_end);
    one->deadline = fan_out_now() + options_.seconds;
    running_.push_back(std::move(one));
  }

  void wait_for_words() {
    std::vector<pollfd> polled;
    for (const auto& one : running_)
      for (const int number : {one->out.get(), one->err.get()})
        if (number >= 0) polled.push_back({number, POLLIN, 0});
    poll(polled.data(), polled.size(), 20);
  }

  void look_after(Running& one) {
    FanOutAnswer& answer = *one.answer;
    read_all(one.out, answer.out, options_.most_bytes, false);
    read_all(one.err, answer.err, k_fan_out_error_bytes, true);
    if (answer.out.size() > options_.most_bytes && !answer.too_long) {
      answer.too_long = true;
      end(one, SIGKILL);
    }
    if (!one.ended && fan_out_now() > one.deadline) {
      end(one, answer.timed_out ? SIGKILL : SIGTERM);
      answer.timed_out = true;
      one.deadline = fan_out_now() + k_fan_out_grace_seconds;
    }
    if (!one.ended && waitpid(one.program.pid, &one.status, WNOHANG) == one.program.pid)
      note_end(one);
    // What it left behind may hold the pipes open: its words are not waited for.
    if (one.ended) {
      read_all(one.out, answer.out, options_.most_bytes, false);
      read_all(one.err, answer.err, k_fan_out_error_bytes, true);
      one.out.reset();
      one.err.reset();
    }
  }

  static void note_end(Running& one) {
    one.ended = true;
    one.answer->code =
        WIFSIGNALED(one.status) ? 128 + WTERMSIG(one.status) : WEXITSTATUS(one.status);
    if (const int why = one.program.start_error(true)) one.answer->start_error = std::strerror(why);
  }

  // What is there now; `keep_end`: of more than `most` the end is kept.
  static void read_all(FileHandle& from, std::string& text, size_t most, bool keep_end) {
    char bytes[65536];
    while (from.get() >= 0) {
      pollfd polled{from.get(), POLLIN, 0};
      if (poll(&polled, 1, 0) <= 0) return;
      const ssize_t count = read(from.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return from.reset();
      if (text.size() <= most) text.append(bytes, static_cast<size_t>(count));
      if (keep_end && text.size() > most) text.erase(0, text.size() - most);
    }
  }

  static void end(const Running& one, int signal) {
    if (!one.ended && one.program.pid > 0) kill(-one.program.pid, signal);
  }

  const std::vector<FanOutTask>& tasks_;
  const FanOutOptions& options_;
  Interrupts& interrupts_;
  std::vector<FanOutAnswer> answers_;
  std::vector<std::unique_ptr<Running>> running_;
  size_t next_ = 0, done_ = 0;
};

}  // namespace

Result<std::vector<FanOutAnswer>> fan_out(const std::vector<FanOutTask>& tasks,
                                          const FanOutOptions& options, Interrupts& interrupts) {
  return FanOut(tasks, options, interrupts).run();
}

}  // namespace cufit::host
