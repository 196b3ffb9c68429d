// SPDX-License-Identifier: Apache-2.0
#include "host/process/memory_sampler.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "host/process/spawn.h"
#include "host/driver/nvml_calls.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr timespec k_interval{0, 250'000'000};
constexpr double k_seconds = 10;  // that samples say something of the end
constexpr size_t k_kept = 48;     // a little more than these seconds
constexpr uint32_t k_most_gpus = 64;
constexpr size_t k_memory_sampler_most_bytes = 64u << 10;  // of one sample

// One line per GPU, then "end": "gpu 0 1048576 67108864 NVIDIA H200".
bool sample(NvmlCalls& nvml, uint32_t count, std::string& out) {
  for (uint32_t i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml.call<int(uint32_t, Device*)>("nvmlDeviceGetHandleByIndex_v2", i, &device) != k_success)
      continue;
    Memory memory{};
    MemoryV2 newer{};
    newer.version = k_memory_v2;
    if (nvml.call<int(Device, MemoryV2*)>("nvmlDeviceGetMemoryInfo_v2", device, &newer) ==
        k_success) {
      memory.total = newer.total;
      memory.used = newer.used;
    } else if (nvml.call<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo", device, &memory) !=
               k_success) {
      continue;
    }
    char name[96] = {};
    (void)nvml.call<int(Device, char*, uint32_t)>("nvmlDeviceGetName", device, name,
                                                  uint32_t{sizeof name - 1});
    out += format("gpu {} {} {} {}\n", i, memory.used, memory.total, formats::printable(name, 96));
  }
  out += "end\n";
  return true;
}

void run_sampler(int pipe) {
  DriverCalls calls(open("/dev/null", O_WRONLY | O_CLOEXEC));  // nobody follows the single calls
  NvmlCalls nvml(calls);
  if (!calls.open("", "libnvidia-ml.so.1", SourceKind::nvml)) return;
  const char* name = nullptr;
  if (nvml.call_any<int()>({"nvmlInit_v2", "nvmlInit"}, name) != k_success) return;
  uint32_t count = 0;
  if (nvml.call_any<int(uint32_t*)>({"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, name,
                                    &count) != k_success)
    return;
  count = std::min(count, k_most_gpus);
  while (true) {
    std::string out;
    sample(nvml, count, out);
    if (write(pipe, out.data(), out.size()) < 0) return;
    nanosleep(&k_interval, nullptr);
  }
}

bool take_line(std::string_view line, std::vector<facts::GpuMemory>& gpus) {
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.size() < 4 || words[0] != "gpu" || gpus.size() >= k_most_gpus) return false;
  const auto index = parse_uint(words[1]), used = parse_uint(words[2]),
             total = parse_uint(words[3]);
  if (!index || !used || !total) return false;
  facts::GpuMemory gpu;
  gpu.index = static_cast<uint32_t>(*index);
  gpu.used_bytes = *used;
  gpu.total_bytes = *total;
  const size_t head = words[0].size() + words[1].size() + words[2].size() + words[3].size() + 4;
  if (line.size() > head) gpu.name = formats::printable(line.substr(head), 96);
  gpus.push_back(std::move(gpu));
  return true;
}

}  // namespace

MemorySampler::MemorySampler(const Host& host) {
  Result<SpawnedWorker> worker = spawn_worker(host, run_sampler);
  if (!worker) return;
  child_ = worker->pid;
  pipe_ = worker->answers.release();
  (void)fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

MemorySampler::~MemorySampler() {
  if (pipe_ >= 0) close(pipe_);
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  // One that hangs in the driver is left to the kernel: it ends when the call returns.
  for (int i = 0; i < 100; ++i) {
    if (waitpid(child_, nullptr, WNOHANG) != 0) return;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

const MemorySample* fullest_of(const std::deque<MemorySample>& samples, double end) {
  const auto used = [](const MemorySample& sample) {
    uint64_t sum = 0;
    for (const facts::GpuMemory& gpu : sample.gpus) sum += gpu.used_bytes;
    return sum;
  };
  const MemorySample* out = nullptr;
  for (const MemorySample& sample : samples) {
    if (sample.seconds < end - k_seconds) continue;
    if (out == nullptr || used(sample) >= used(*out)) out = &sample;
  }
  return out;
}

void MemorySampler::read_some() {
  char bytes[4096];
  while (pipe_ >= 0) {
    const ssize_t got = read(pipe_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0 || buffer_.size() > k_memory_sampler_most_bytes) {
      close(pipe_);
      pipe_ = -1;
      return;
    }
    buffer_.append(bytes, static_cast<size_t>(got));
    for (size_t end; (end = buffer_.find('\n')) != std::string::npos; buffer_.erase(0, end + 1)) {
      const std::string_view line = std::string_view(buffer_).substr(0, end);
      if (line == "end") {
        samples_.push_back({DriverCalls::now(), std::move(current_)});
        if (samples_.size() > k_kept) samples_.pop_front();
        current_.clear();
      } else if (!take_line(line, current_)) {
        current_.clear();
      }
    }
  }
}

}  // namespace cufit::host
