// SPDX-License-Identifier: Apache-2.0
// What quota domains have charged beside what NVML says of the same processes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "facts/quota_domains.h"

namespace cufit::resolve {

// Why there is no figure of NVML's. unasked: no process holds memory there. unanswered: NVML did not list
// processes at all. unlisted: it lists others (a container: its pids are the host's). unsized: without their memory.
enum class NoNvml { none, unasked, unanswered, unlisted, unsized };

struct DeviceUsage {
  // NVML's; where NVML does not answer, its place in the order of PCI addresses, which is NVML's.
  std::optional<uint32_t> index;
  std::string name;  // "NVIDIA H100 80GB HBM3"; empty: not known
  std::string uuid, pci;
  std::optional<uint64_t> limit_bytes;
  uint64_t used_bytes = 0, peak_bytes = 0;
  uint64_t refusals = 0, driver_refusals = 0, spilled_bytes = 0;
  std::optional<uint64_t> nvml_bytes;  // of the domain's processes
  NoNvml no_nvml = NoNvml::none;
};

struct ProcessUsage {
  uint32_t pid = 0;  // of its pid namespace
  bool elsewhere = false;
  std::string name;
  uint64_t used_bytes = 0;          // of all devices
  std::vector<uint64_t> by_device;  // as DomainUsage::devices
};

struct DomainUsage {
  std::string name;  // of --share; empty: none
  std::string path;
  uint32_t owner = 0;
  std::vector<DeviceUsage> devices;
  std::vector<ProcessUsage> processes;  // the largest first
  size_t dead = 0;
  std::string foreign;
  std::vector<std::string> unknown;
};

// The number of the GPU at a PCI address as NVML and nvidia-smi count, where NVML was not asked; nullopt: not on this bus.
std::optional<uint32_t> place_on_bus(const std::string& address, const facts::Facts& facts);

std::vector<DomainUsage> domain_usage(const facts::QuotaDomains& domains,
                                      const facts::Facts& facts);

}  // namespace cufit::resolve
