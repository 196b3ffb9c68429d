// SPDX-License-Identifier: Apache-2.0
#include "host/driver/gpu_sampler.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "base/bytes.h"
#include "base/format.h"
#include "facts/gpu_sample_json.h"
#include "host/driver/driver_calls.h"
#include "host/driver/nvml_sample.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

constexpr double k_waits_from = 1;  // interval: of more than 20 GPUs a sample takes longer then
constexpr double k_first_pause = 1, k_most_pause = 60;  // before another child
// More of them would only hang beside the first ones.
constexpr size_t k_most_left_behind = 3;

// Its own page, seen by the child as well.
class SharedNote {
 public:
  SharedNote() {
    void* page =
        mmap(nullptr, sizeof(CallNote), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) note_ = new (page) CallNote{};
  }
  ~SharedNote() {
    if (note_ != nullptr) munmap(note_, sizeof(CallNote));
  }
  SharedNote(const SharedNote&) = delete;
  SharedNote& operator=(const SharedNote&) = delete;
  CallNote* get() const { return note_; }
  std::string call() const {
    if (note_ == nullptr) return {};
    char name[sizeof note_->name];
    std::memcpy(name, note_->name, sizeof name);
    return std::string(name, strnlen(name, sizeof name - 1));
  }

 private:
  CallNote* note_ = nullptr;
};

// In the child. A message: u32 size, a sample as JSON.
void sample_for_ever(int pipe, CallNote* note, const SamplerOptions& options) {
  DriverCalls calls(pipe, note);
  NvmlSample questions(calls, options.interval_seconds >= k_waits_from, options.all_each_time);
  const bool open = questions.open(options.library_dir);
  double next = DriverCalls::now();
  while (true) {
    const std::string text = facts::sample_to_json(questions.take());
    const auto size = static_cast<uint32_t>(text.size());
    std::string message(sizeof size, '\0');
    std::memcpy(message.data(), &size, sizeof size);
    calls.send(message + text);  // ends this process where nobody reads
    if (!open) return;
    calls.before("");
    next = std::max(next + options.interval_seconds, DriverCalls::now());
    questions.wait(next - DriverCalls::now());
    next = std::min(next, DriverCalls::now());  // an Xid ends the wait
  }
}

}  // namespace

struct GpuSampler::State {
  State(const Host& machine, SamplerOptions wanted) : host(machine), options(std::move(wanted)) {}

  void start();
  bool read_messages();
  void take(facts::GpuSample sample);
  bool give_up_child(bool ended = false);
  void note_end();
  void keep_xids();
  bool look_after_child();
  void reap();

  const Host& host;
  SamplerOptions options;
  SharedNote note;
  SpawnedWorker worker;
  std::string buffer;
  facts::GpuSample newest;
  bool answered = false;  // at least once
  bool child_answered = false;
  double heard = 0;  // when the child last said something, or began
  double start_again = 0, pause = k_first_pause;
  double stalled_since = 0;  // 0 = it is not
  std::vector<pid_t> dying;
  // Of children that are gone: Xids are counted on.
  std::map<std::pair<std::string, uint32_t>, uint64_t> xids_before, xids_of_child;
};

void GpuSampler::State::start() {
  start_again = 0;
  buffer.clear();
  child_answered = false;
  heard = DriverCalls::now();
  if (note.get() != nullptr) std::memset(note.get(), 0, sizeof(CallNote));
  Result<SpawnedWorker> made =
      spawn_worker(host, [&](int pipe) { sample_for_ever(pipe, note.get(), options); });
  if (!made) {
    start_again = heard + pause;
    return;
  }
  worker = std::move(*made);
}

void GpuSampler::State::keep_xids() {
  for (const auto& [key, count] : xids_of_child) xids_before[key] += count;
  xids_of_child.clear();
}

// The pipe has closed: the child is ending, which is no hang. Its end is seen a moment later.
void GpuSampler::State::note_end() {
  constexpr int k_most_looks = 100;
  for (int look = 0; look < k_most_looks; ++look) {
    int status = 0;
    const pid_t done = waitpid(worker.pid, &status, WNOHANG);
    if (done == 0) {
      const timespec moment{0, 1'000'000};
      nanosleep(&moment, nullptr);
      continue;
    }
    if (done == worker.pid && WIFSIGNALED(status))
      newest.stalled_end = format("signal {}", WTERMSIG(status));
    else if (done == worker.pid)
      newest.stalled_end = format("exit code {}", WEXITSTATUS(status));
    if (done == worker.pid) worker.pid = -1;
    return;
  }
}

// The child's time is over, or it said what is none: it is ended, and another one is tried later.
bool GpuSampler::State::give_up_child(bool ended) {
  const double now = DriverCalls::now();
  newest.stalled_end.clear();
  if (ended) note_end();
  if (worker.pid > 0) {
    kill(worker.pid, SIGKILL);
    dying.push_back(worker.pid);
  }
  worker.pid = -1;
  worker.answers.reset();
  keep_xids();
  start_again = now + pause;
  pause = std::min(pause * 2, k_most_pause);
  const bool first = stalled_since == 0;
  if (first) stalled_since = heard;
  newest.stalled_call = note.call();
  return first;
}

void GpuSampler::State::take(facts::GpuSample sample) {
  heard = DriverCalls::now();
  answered = child_answered = true;
  stalled_since = 0;
  pause = k_first_pause;
  xids_of_child.clear();
  for (const facts::SampledXid& xid : sample.xids) xids_of_child[{xid.pci, xid.number}] = xid.count;
  std::map<std::pair<std::string, uint32_t>, uint64_t> all = xids_before;
  for (const auto& [key, count] : xids_of_child) all[key] += count;
  sample.xids.clear();
  for (const auto& [key, count] : all) sample.xids.push_back({key.first, key.second, count});
  newest = std::move(sample);
}

// True: there is a new sample, or the child is gone.
bool GpuSampler::State::read_messages() {
  char bytes[65536];
  const ssize_t count = read(worker.answers.get(), bytes, sizeof bytes);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (count <= 0) {
    // Without a library, or a driver that does not start: what it said is the answer for a while.
    if (child_answered && newest.gpus.empty() && !newest.missing.empty()) {
      dying.push_back(worker.pid);
      worker.pid = -1;
      worker.answers.reset();
      keep_xids();
      start_again = DriverCalls::now() + std::max(options.interval_seconds, 5.0);
      return false;
    }
    return give_up_child(true);
  }
  buffer.append(bytes, static_cast<size_t>(count));
  bool renewed = false;
  while (buffer.size() >= sizeof(uint32_t)) {
    const uint32_t size = load_le<uint32_t>(buffer.data());
    if (size > facts::k_most_sample_bytes) return give_up_child();
    if (buffer.size() < sizeof size + size) break;
    Result<facts::GpuSample> sample =
        facts::sample_from_json(std::string_view(buffer).substr(sizeof size, size));
    buffer.erase(0, sizeof size + size);
    if (!sample) return give_up_child();
    take(std::move(*sample));
    renewed = true;
  }
  return renewed;
}

void GpuSampler::State::reap() {
  std::erase_if(dying, [](pid_t pid) {
    const pid_t done = waitpid(pid, nullptr, WNOHANG);
    return done == pid || (done < 0 && errno == ECHILD);
  });
}

bool GpuSampler::State::look_after_child() {
  reap();
  const double now = DriverCalls::now();
  if (worker.pid <= 0) {
    if (now >= start_again && dying.size() < k_most_left_behind) start();
    return false;
  }
  const double limit = child_answered ? options.interval_seconds + options.limit_seconds
                                      : std::max(options.start_seconds, options.limit_seconds);
  return now - heard > limit && give_up_child();
}

GpuSampler::GpuSampler(const Host& host, SamplerOptions options)
    : state_(std::make_unique<State>(host, std::move(options))) {
  state_->start();
}

GpuSampler::~GpuSampler() {
  if (state_->worker.pid > 0) {
    kill(state_->worker.pid, SIGKILL);
    state_->dying.push_back(state_->worker.pid);
  }
  for (int i = 0; i < 200 && !state_->dying.empty(); ++i) {
    state_->reap();
    timespec pause{0, 500'000};
    if (!state_->dying.empty()) nanosleep(&pause, nullptr);
  }
}

bool GpuSampler::wait(double seconds) {
  State& state = *state_;
  const double end = DriverCalls::now() + seconds;
  bool changed = false;
  while (!changed) {
    changed = state.look_after_child();
    const double left = end - DriverCalls::now();
    pollfd polled{state.worker.answers.get(), POLLIN, 0};
    // In short turns: a child's time may be over, or another one due.
    const int milliseconds = static_cast<int>(std::clamp(left, 0.0, 0.25) * 1000);
    const int ready = poll(&polled, polled.fd >= 0 ? 1 : 0, milliseconds);
    if (ready > 0) changed = state.read_messages() || changed;
    if (ready < 0 && errno == EINTR) break;  // who waits looks at signals
    if (left <= 0 && ready <= 0) break;
  }
  if (state.stalled_since > 0)
    state.newest.stalled_seconds = DriverCalls::now() - state.stalled_since;
  return changed;
}

const facts::GpuSample& GpuSampler::newest() const { return state_->newest; }
bool GpuSampler::has_answered() const { return state_->answered; }
std::string GpuSampler::call() const { return state_->note.call(); }
int GpuSampler::descriptor() const { return state_->worker.answers.get(); }
size_t GpuSampler::left_behind() const { return state_->dying.size(); }

}  // namespace cufit::host
