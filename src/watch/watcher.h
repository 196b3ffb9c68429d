// SPDX-License-Identifier: Apache-2.0
// What is known of a machine's GPUs in the course of samples: the newest values, how each process's memory grows, what nobody
// owns, what happened a while ago. Pure; `cufit top`, `exporter` and `watch` look at the same one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "facts/gpu_sample.h"
#include "watch/memory_series.h"
#include "watch/memory_trend.h"

namespace cufit::watch {

// The last values of one GPU for a small picture, oldest first: parts from 0 to 1, below 0 where there was none.
struct GpuHistory {
  static constexpr size_t k_most = 120;
  std::vector<float> memory, utilization;
};

struct WatchedGpu {
  facts::SampledGpu now;
  GpuHistory history;
  // Used, and of no process that NVML lists: contexts of other pid namespaces, the driver itself, what a process left that
  // has ended. Absent where NVML does not list processes, or lists them without their memory.
  std::optional<uint64_t> unowned_bytes;
  // By reason, since this was begun: between two samples half of the time for each that has it. Absent where NVML does not
  // tell reasons; a reason that never was has no entry.
  std::optional<std::map<std::string, double>> throttle_seconds;
};

// A GPU that was listed once, and may be gone by now: what happens to it still has its number.
struct KnownGpu {
  std::string pci;  // "0000:01:00.0"
  std::string uuid, name;
  uint32_t index = 0;
  bool listed = true;  // in the newest sample
  // The number whose count rose last since the first sample, 0: none did. Of several in one sample the highest: what follows
  // from another, as 154 from 79 and 94 from 48, has mostly the higher one.
  uint32_t last_xid = 0;
};

struct WatchedProcess {
  facts::SampledProcess now;
  MemoryTrend trend;
};

struct WatchedMachine {
  double time = 0;  // of the sample, seconds since the epoch
  std::string driver_version;
  std::vector<WatchedGpu> gpus;           // an instance after its GPU
  std::vector<WatchedProcess> processes;  // by GPU, the largest first
  std::vector<KnownGpu> known_gpus;       // by PCI address; no instances
  std::vector<facts::SampledXid> xids;    // by PCI address and number
  std::vector<facts::MissingValue> missing;
  double driver_seconds = 0;
  std::optional<double> stalled_seconds;
  std::string stalled_call, stalled_end;
};

// Why NVML itself did not answer, or does not list GPUs; null where it did. A list without a GPU is an answer.
const facts::MissingValue* nvml_problem(const std::vector<facts::MissingValue>& missing);

class Watcher {
 public:
  // A sample that is no later than the last one changes the stalled state alone. One that is a minute or more earlier says
  // that the clock was set back: it is the newest.
  void add(const facts::GpuSample& sample);
  const WatchedMachine& now() const { return now_; }

 private:
  struct Series {
    MemorySeries memory;
    double seen = 0;
  };
  void add_gpus(const facts::GpuSample& sample);
  void add_processes(const facts::GpuSample& sample);
  void add_throttle(WatchedGpu& gpu, double seconds);
  void remember_gpus(const facts::GpuSample& sample);
  void remember_xids(const facts::GpuSample& sample, bool is_first);
  void forget_the_gone(double time);

  WatchedMachine now_;
  std::map<std::string, GpuHistory> histories_;  // by UUID
  std::map<std::string, Series> series_;         // by UUID, pid and start of the process
  struct Throttle {
    std::vector<std::string> before;
    std::map<std::string, double> seconds;
  };
  std::map<std::string, Throttle> throttles_;  // by UUID
};

}  // namespace cufit::watch
