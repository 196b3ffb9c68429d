// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/domain_usage.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::resolve {
namespace {

// By UUID, of an instance too; else by PCI address. Never by an index: CUDA and NVML count differently.
const facts::NvmlGpu* gpu_of(const formats::QuotaDevice& device, const facts::NvmlFacts& nvml) {
  for (const facts::NvmlGpu& gpu : nvml.gpus) {
    if (!device.uuid.empty() && gpu.uuid && *gpu.uuid == device.uuid) return &gpu;
    for (const facts::MigInstance& instance : gpu.mig_instances)
      if (!device.uuid.empty() && instance.uuid == device.uuid) return &gpu;
  }
  for (const facts::NvmlGpu& gpu : nvml.gpus)
    if (!device.pci.empty() && gpu.pci_address && lower(*gpu.pci_address) == device.pci)
      return &gpu;
  return nullptr;
}

void add_nvml(const facts::LiveDomain& live, size_t row, const facts::NvmlGpu* gpu,
              DeviceUsage& out) {
  uint64_t sum = 0;
  bool any = false;
  for (size_t i = 0; i < live.domain.processes.size(); ++i) {
    const formats::QuotaProcess& process = live.domain.processes[i];
    if (process.used_bytes[row] == 0) continue;
    any = true;
    if (!gpu || !gpu->processes) {
      out.no_nvml = NoNvml::unanswered;
      return;
    }
    const auto listed = std::find_if(gpu->processes->begin(), gpu->processes->end(),
                                     [&](const facts::GpuProcess& candidate) {
                                       return !live.elsewhere[i] && candidate.pid == process.pid;
                                     });
    if (listed == gpu->processes->end()) {
      out.no_nvml = NoNvml::unlisted;
      return;
    }
    if (!listed->used_bytes) {
      out.no_nvml = NoNvml::unsized;
      return;
    }
    sum += *listed->used_bytes;
  }
  if (any)
    out.nvml_bytes = sum;
  else
    out.no_nvml = NoNvml::unasked;
}

DeviceUsage device_usage(const facts::LiveDomain& live, size_t row, const facts::Facts& facts) {
  const formats::QuotaDevice& device = live.domain.devices[row];
  const facts::NvmlGpu* gpu = gpu_of(device, facts.nvml);
  DeviceUsage out;
  out.index = gpu ? std::optional(gpu->index) : place_on_bus(device.pci, facts);
  if (gpu) out.name = gpu->name.value_or("");
  out.uuid = device.uuid, out.pci = device.pci;
  if (device.limit_bytes != formats::k_no_quota) out.limit_bytes = device.limit_bytes;
  out.used_bytes = device.used_bytes, out.peak_bytes = device.peak_bytes;
  out.refusals = device.refusals, out.driver_refusals = device.driver_refusals;
  out.spilled_bytes = device.spilled_bytes;
  add_nvml(live, row, gpu, out);
  return out;
}

}  // namespace

// NVML numbers the GPUs of its driver by their PCI addresses.
std::optional<uint32_t> place_on_bus(const std::string& address, const facts::Facts& facts) {
  if (address.empty() || !facts.pci || !facts.nvml.gpus.empty()) return std::nullopt;
  uint32_t before = 0;
  bool found = false;
  for (const facts::PciGpu& gpu : *facts.pci) {
    if (!starts_with(gpu.class_code, "03") || !gpu.driver || *gpu.driver != "nvidia") continue;
    found = found || lower(gpu.address) == address;
    if (lower(gpu.address) < address) ++before;
  }
  return found ? std::optional(before) : std::nullopt;
}

std::vector<DomainUsage> domain_usage(const facts::QuotaDomains& domains,
                                      const facts::Facts& facts) {
  std::vector<DomainUsage> out;
  for (const facts::LiveDomain& live : domains.domains) {
    DomainUsage one;
    one.name = live.domain.name;
    one.path = live.path;
    one.owner = live.owner;
    one.dead = live.dead;
    one.foreign = live.domain.foreign;
    one.unknown = live.domain.unknown;
    for (size_t row = 0; row < live.domain.devices.size(); ++row)
      one.devices.push_back(device_usage(live, row, facts));
    for (size_t i = 0; i < live.domain.processes.size(); ++i) {
      const formats::QuotaProcess& process = live.domain.processes[i];
      ProcessUsage usage{process.pid, live.elsewhere[i], process.name, 0, process.used_bytes};
      for (const uint64_t bytes : process.used_bytes)
        usage.used_bytes =
            bytes > UINT64_MAX - usage.used_bytes ? UINT64_MAX : usage.used_bytes + bytes;
      one.processes.push_back(std::move(usage));
    }
    std::stable_sort(
        one.processes.begin(), one.processes.end(),
        [](const ProcessUsage& a, const ProcessUsage& b) { return a.used_bytes > b.used_bytes; });
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace cufit::resolve
