// SPDX-License-Identifier: Apache-2.0
#include "host/driver/driver_child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "host/process/spawn.h"
#include "host/driver/driver_wire.h"
#include "host/probe.h"

namespace cufit::host {
namespace {

constexpr double k_driver_child_kill_grace_seconds =
    2;  // how long a killed child may take to be gone
// Without a persistence daemon every first cuInit or nvmlInit brings up each GPU's firmware, 1 to 3
// s apiece; an 8-GPU machine needs more than the limit that suits a desktop.
constexpr double k_seconds_per_further_gpu = 3;

struct Child {
  const char* what = "";  // "NVML", "CUDA": for messages
  void (*work)(DriverCalls&, const ChildTask&) = nullptr;
  pid_t pid = -1;
  int pipe = -1;  // read end; -1 = closed
  std::string buffer;
  ChildAnswers answers;
  std::string start_error;  // fork or pipe failed
  double deadline = 0;
  bool timed_out = false;
  bool left_behind = false;  // does not even die of SIGKILL
  bool reaped = false;
  int status = 0;  // of waitpid
};

void start(Child& child, const Host& host, const ChildTask& task) {
  Result<SpawnedWorker> worker = spawn_worker(host, [&](int pipe) {
    DriverCalls calls(pipe);
    child.work(calls, task);
    std::string out;
    put_end(out);
    calls.send(out);
  });
  if (!worker) {
    child.start_error = worker.error().what;
    return;
  }
  child.pid = worker->pid;
  child.pipe = worker->answers.release();
}

void close_pipe(Child& child) {
  if (child.pipe >= 0) close(child.pipe);
  child.pipe = -1;
}

// Reads what is there. Progress means that the child is alive, so its time begins anew.
void read_some(Child& child, const ProbeOptions& options, double limit) {
  char bytes[65536];
  ssize_t count = read(child.pipe, bytes, sizeof bytes);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return close_pipe(child);
  child.buffer.append(bytes, static_cast<size_t>(count));
  uint32_t progress_before = child.answers.progress_frames;
  child.buffer.erase(0, take_frames(child.buffer, child.answers));
  if (child.answers.progress_frames != progress_before) {
    child.deadline = DriverCalls::now() + limit;
    if (options.progress) {
      options.progress(child.answers.progress_what, child.answers.progress_done,
                       child.answers.progress_total);
    }
  }
  if (!child.answers.damage.empty()) close_pipe(child);
}

// Ends the child if it still runs and collects its status, without ever waiting for one that sits
// in the kernel.
void reap(Child& child) {
  if (child.pid <= 0) return;
  if (child.timed_out || !child.answers.damage.empty()) kill(child.pid, SIGKILL);
  double end = DriverCalls::now() + k_driver_child_kill_grace_seconds;
  bool killed = false;
  while (true) {
    pid_t done = waitpid(child.pid, &child.status, WNOHANG);
    if (done == child.pid || (done < 0 && errno != EINTR)) return;
    if (DriverCalls::now() > end) {
      if (killed || child.timed_out) break;
      // It closed its pipe but stays, for example in an exit handler of the driver.
      kill(child.pid, SIGKILL);
      killed = true;
      end = DriverCalls::now() + k_driver_child_kill_grace_seconds;
    }
    timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
  child.left_behind = true;
}

void gather(std::array<Child, 2>& children, const ProbeOptions& options, double limit) {
  while (true) {
    pollfd polled[2];
    Child* owner[2];
    nfds_t count = 0;
    double now = DriverCalls::now();
    double wait = limit;
    for (Child& child : children) {
      if (child.pipe >= 0 && now >= child.deadline) {
        child.timed_out = true;
        close_pipe(child);
      }
      if (child.pipe < 0) continue;
      wait = std::min(wait, child.deadline - now);
      owner[count] = &child;
      polled[count++] = {child.pipe, POLLIN, 0};
    }
    if (count == 0) return;
    if (poll(polled, count, static_cast<int>(wait * 1000) + 1) <= 0) continue;
    for (nfds_t i = 0; i < count; ++i) {
      if (polled[i].revents != 0) read_some(*owner[i], options, limit);
    }
  }
}

struct Outcome {
  WhyNot why = WhyNot::not_asked;
  std::string note;  // empty = the child said everything
};

std::string signal_name(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGABRT:
      return "SIGABRT";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    case SIGKILL:
      return "SIGKILL";
    case SIGTERM:
      return "SIGTERM";
    default:
      return format("signal {}", number);
  }
}

Outcome outcome(const Child& child, double limit) {
  std::string call = child.answers.call.empty() ? "start of the child" : child.answers.call;
  if (!child.start_error.empty()) return {WhyNot::not_asked, child.start_error};
  if (child.timed_out)
    return {WhyNot::timeout, format("{} did not return within {:g} s", call, limit)};
  if (!child.answers.damage.empty()) return {WhyNot::malformed, child.answers.damage};
  if (child.answers.finished) return {};
  if (WIFSIGNALED(child.status)) {
    return {WhyNot::crashed, format("{} in {}", signal_name(WTERMSIG(child.status)), call)};
  }
  return {WhyNot::crashed,
          format("the process ended in {} with status {}", call, WEXITSTATUS(child.status))};
}

// The persistence of all GPUs together, where the kernel's side could not say it.
void fill_persistence(facts::Facts& facts) {
  if (facts.kernel.persistence) return;
  uint32_t on = 0, off = 0;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    if (gpu.persistence) ++(*gpu.persistence ? on : off);
  }
  if (on + off == 0) return;
  const char* text = off == 0 ? "enabled" : on == 0 ? "disabled" : "mixed";
  facts.kernel.persistence =
      known<std::string>(text, SourceKind::nvml, "nvmlDeviceGetPersistenceMode");
}

double time_limit(const ProbeOptions& options, const facts::Facts& facts) {
  uint32_t gpus = 0;
  if (!options.more_time_per_gpu) return options.driver_timeout_seconds;
  if (facts.pci) {
    for (const facts::PciGpu& gpu : *facts.pci) gpus += starts_with(gpu.class_code, "03") ? 1 : 0;
  }
  return options.driver_timeout_seconds + (gpus > 1 ? (gpus - 1) * k_seconds_per_further_gpu : 0);
}

}  // namespace

struct DriverQuestions::State {
  ProbeOptions options;
  double limit = 0;
  std::array<Child, 2> children;
};

DriverQuestions::DriverQuestions(const Host& host, const ProbeOptions& options,
                                 const facts::Facts& facts)
    : state_(std::make_unique<State>()) {
  if (!options.driver_calls) return;
  state_->options = options;
  state_->limit = time_limit(options, facts);
  ChildTask task{options.driver_library_dir, options.deep, options.driver_depth, state_->limit};
  std::array<Child, 2>& children = state_->children;
  children[0].what = "NVML", children[0].work = ask_nvml;
  children[1].what = "CUDA", children[1].work = ask_cuda;
  if (!options.cuda_driver) children[1].work = nullptr;
  for (Child& child : children)
    if (child.work != nullptr) start(child, host, task);
}

DriverQuestions::~DriverQuestions() {
  for (Child& child : state_->children) {
    if (child.pid <= 0 || child.reaped) continue;
    child.timed_out = true;  // nobody waits for its answer any more
    close_pipe(child);
    reap(child);
  }
}

void DriverQuestions::finish(facts::Facts& facts) {
  if (!state_->options.driver_calls || state_->limit == 0) return;
  std::array<Child, 2>& children = state_->children;
  const double limit = state_->limit;
  // The limit runs from here on: what other probes took meanwhile is not the driver's fault.
  for (Child& child : children) child.deadline = DriverCalls::now() + limit;
  gather(children, state_->options, limit);
  for (Child& child : children) {
    reap(child);
    child.reaped = true;
    if (child.left_behind) {
      facts.problems.push_back(
          format("process {} asking {} hangs in the kernel and cannot be ended (in {})", child.pid,
                 child.what, child.answers.call));
    }
  }
  facts.nvml = std::move(children[0].answers.nvml);
  facts.cuda = std::move(children[1].answers.cuda);
  for (Child& child : children) {
    if (child.work == nullptr) continue;
    Outcome end = outcome(child, limit);
    if (end.note.empty()) continue;
    facts.problems.push_back(format("asking {}: {}", child.what, end.note));
    if (child.work == ask_nvml) mark_unreached(facts.nvml, end.why, child.answers.call, end.note);
    if (child.work == ask_cuda) mark_unreached(facts.cuda, end.why, child.answers.call, end.note);
  }
  fill_persistence(facts);
}

void read_driver_answers(const Host& host, const ProbeOptions& options, facts::Facts& facts) {
  DriverQuestions(host, options, facts).finish(facts);
}

}  // namespace cufit::host
