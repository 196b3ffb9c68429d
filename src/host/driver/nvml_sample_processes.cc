// SPDX-License-Identifier: Apache-2.0
// Who uses a GPU, and how much.
#include <map>
#include <vector>

#include "host/driver/nvml_processes.h"
#include "host/driver/nvml_sample_values.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr uint32_t k_most_uses = 4096;  // entries of processes' use, of one GPU

}  // namespace

void NvmlSample::ask_processes(Device device, uint32_t place, facts::GpuSample& out) {
  Fact<std::vector<facts::GpuProcess>> told =
      read_processes(calls_, device, ProcessNames::leave_out);
  const auto processes = taken(std::move(told), "processes");
  if (!processes) return;
  for (const facts::GpuProcess& process : *processes) {
    facts::SampledProcess one;
    one.gpu = place;
    one.pid = process.pid;
    one.kind = process.kind;
    if (process.used_bytes) one.memory_bytes = *process.used_bytes;
    out.processes.push_back(std::move(one));
  }
}

// Of the samples that the driver keeps since the last time the newest of each process.
void NvmlSample::ask_use(Device device, uint32_t place, Before& before, facts::GpuSample& out) {
  using Get = int(Device, ProcessUse*, uint32_t*, uint64_t);
  const char* const name = "nvmlDeviceGetProcessUtilization";
  uint64_t& seen = before.use_timestamp[device];
  uint32_t count = 0;
  int result = nvml_.call<Get>(name, device, nullptr, &count, seen);
  if (result != k_insufficient_size || count == 0) return;
  std::vector<ProcessUse> uses(std::min(count, k_most_uses));
  count = static_cast<uint32_t>(uses.size());
  result = nvml_.call<Get>(name, device, uses.data(), &count, seen);
  if (result != k_success) return;
  uses.resize(std::min<size_t>(count, uses.size()));
  std::map<uint32_t, const ProcessUse*> newest;
  for (const ProcessUse& use : uses) {
    const ProcessUse*& kept = newest[use.pid];
    if (kept == nullptr || use.timestamp_us >= kept->timestamp_us) kept = &use;
    seen = std::max(seen, use.timestamp_us);
  }
  for (facts::SampledProcess& process : out.processes) {
    const auto found = newest.find(process.pid);
    if (process.gpu == place && found != newest.end())
      process.utilization = part_of_percent(found->second->sm);
  }
}

}  // namespace cufit::host
