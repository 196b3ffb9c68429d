// SPDX-License-Identifier: Apache-2.0
// What NVML said of one GPU while something was measured on it: energy, clocks, reasons for lower clocks, and who else was
// there. Pure; used by `cufit bench`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "facts/gpu_sample.h"

namespace cufit::watch {

struct TimeSpan {
  double begin = 0, end = 0;  // seconds since the epoch
};

struct CardLoad {
  // Of all spans together; absent where the card has no counter, or it was not read before the first and after the last.
  std::optional<double> joules;
  std::optional<uint32_t> sm_clock_min_mhz, sm_clock_max_mhz;
  std::vector<std::string> throttle;  // reasons that were active in one of them, sorted
};

class CardRecord {
 public:
  // Of a GPU or an instance by its UUID, with or without "GPU-" or "MIG-"; energy and clocks of an instance are its GPU's.
  explicit CardRecord(std::string uuid);

  void add(const facts::GpuSample& sample);
  // Processes of this measurement.
  void own(uint32_t pid) { own_.insert(pid); }

  CardLoad load_in(const std::vector<TimeSpan>& spans) const;
  // The most that NVML's list gave a process; absent: it was not in it (another pid namespace), or has no figure.
  std::optional<uint64_t> process_bytes(uint32_t pid) const;
  void forget_process(uint32_t pid) { memory_.erase(pid); }
  // Others on the GPU, by pid. One that this pid namespace does not show may be the measurement itself, unless it was there
  // in the first sample, before any was started.
  std::vector<facts::SampledProcess> neighbours() const;
  bool found() const { return found_; }  // a sample had this GPU

 private:
  struct Point {
    double time = 0;
    std::optional<double> joules;
    std::optional<uint32_t> sm_clock_mhz;
    std::vector<std::string> throttle;
  };
  std::optional<double> joules_at(double time) const;

  std::string uuid_;
  std::vector<Point> points_;
  std::map<uint32_t, uint64_t> memory_;
  std::map<uint32_t, facts::SampledProcess> others_;
  std::set<uint32_t> own_, there_before_;
  bool first_ = true, found_ = false;
};

}  // namespace cufit::watch
