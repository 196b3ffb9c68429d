// SPDX-License-Identifier: Apache-2.0
// What the sampler's child asks NVML, again and again: the values of facts/gpu_sample.h. Runs in that child alone
// (gpu_sampler.h); a call may hang there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "facts/gpu_sample.h"
#include "host/driver/nvml_calls.h"

namespace cufit::host {

class NvmlSample {
 public:
  // `waits`: also what takes 40 ms a GPU, in which nothing is computed. `all_each_time`: also what costs the driver
  // much; else every 4.5 s.
  explicit NvmlSample(DriverCalls& calls, bool waits = false, bool all_each_time = false)
      : calls_(calls), nvml_(calls), waits_(waits), all_each_time_(all_each_time) {}

  // Opens the library and starts it. False: why is in `missing` of what take() gives.
  bool open(const std::string& library_dir);
  facts::GpuSample take();
  // Waits for Xids, at most so long; they are in the next sample, which is due at once then. Sleeps where NVML has no events.
  void wait(double seconds);

 private:
  // Of one GPU, by its UUID, from the last sample; and what never changes.
  struct Before {
    double time = 0;
    uint64_t pcie_rx = 0, pcie_tx = 0;
    std::map<nvml::Device, uint64_t> use_timestamp;  // of the last list of processes' use
    bool watched = false;                            // its events are asked for
    bool has_short_pcie = false;                     // no counters of PCIe with 64 bits
    bool divided = false;                            // by MIG
    double dear_time = 0;                            // of the next two
    facts::SampledGpu dear;
    std::map<std::string, std::string> dear_missing;
    facts::SampledGpu fixed;
  };

  void take_gpu(uint32_t index, facts::GpuSample& out);
  void take_instances(nvml::Device device, const facts::SampledGpu& card, facts::GpuSample& out);
  void ask_fixed(nvml::Device device, facts::SampledGpu& gpu);
  void take_dear(nvml::Device device, facts::SampledGpu& gpu, Before& before);
  void ask_dear(nvml::Device device, Before& before);
  void ask_memory(nvml::Device device, facts::SampledGpu& gpu);
  void ask_load(nvml::Device device, facts::SampledGpu& gpu);
  void ask_links(nvml::Device device, facts::SampledGpu& gpu);
  void ask_errors(nvml::Device device, facts::SampledGpu& gpu);
  void ask_pcie_rates(nvml::Device device, facts::SampledGpu& gpu);
  void ask_fields(nvml::Device device, facts::SampledGpu& gpu, Before& before);
  void ask_processes(nvml::Device device, uint32_t place, facts::GpuSample& out);
  void ask_use(nvml::Device device, uint32_t place, Before& before, facts::GpuSample& out);
  void watch_events(nvml::Device device, const facts::SampledGpu& gpu, Before& before);
  // The value, or nothing and a note of why.
  template <class T>
  std::optional<T> taken(Fact<T> fact, const char* what);
  void note_missing(const std::string& what, const std::string& why);

  DriverCalls& calls_;
  NvmlCalls nvml_;
  std::string driver_version_;
  std::string asked_;                           // "gpu 0: "; whose values are asked for
  std::map<std::string, std::string> missing_;  // why by what; of this sample
  std::map<std::string, Before> before_;
  std::map<uint32_t, std::string> uuid_of_;  // by index; of a lost GPU its last one
  std::map<nvml::Device, std::string> pci_of_;
  std::map<std::pair<std::string, uint32_t>, uint64_t> xids_;
  bool waits_ = false, all_each_time_ = false;
  void* events_ = nullptr;
  bool started_ = false;
};

}  // namespace cufit::host
