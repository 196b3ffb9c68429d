// SPDX-License-Identifier: Apache-2.0
// What on the host would starve the GPUs: cores and shared memory for DataLoader workers, memory
// limits, locked memory for RDMA, the PCIe link. Rows of a table, not findings: none of them stops
// torch.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/report_sections.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

Link row(const char* name, LinkState state, const std::string& key) {
  return section_row("host_limits", name, state, key);
}

// Cores that this process may use; a cgroup quota below the affinity mask counts.
void add_cores(const Input& input, std::vector<Link>& rows) {
  const facts::SystemFacts& system = input.facts.system;
  if (!system.cpus) {
    if (failed(system.cpus)) rows.push_back(row("cpu", LinkState::unknown, "unknown"));
    return;
  }
  double cores = double(*system.cpus);
  const bool quota = system.cpu_limit && *system.cpu_limit > 0 && *system.cpu_limit < cores;
  if (quota) cores = *system.cpu_limit;
  // One process per GPU needs a core itself; what is left over are cores for its workers.
  const size_t gpus = input.gpus.size();
  const long per_gpu = long(cores / double(gpus));
  const long workers = std::max(0L, per_gpu - 1);
  Link link = row("cpu", workers >= 2 ? LinkState::ok : LinkState::limited,
                  workers < 2 ? "few"
                  : quota     ? "quota"
                              : "ok");
  link.args["cores"] = quota ? format("{:.3g}", cores) : std::to_string(*system.cpus);
  link.args["all"] = std::to_string(*system.cpus);
  link.args["gpus"] = std::to_string(gpus);
  link.args["workers"] = std::to_string(workers);
  link.evidence.push_back(seen(system.cpus));
  if (quota) link.evidence.push_back(seen(system.cpu_limit.source, link.args["cores"]));
  rows.push_back(std::move(link));
}

void add_shm(const Input& input, std::vector<Link>& rows) {
  const Fact<uint64_t>& shm = input.facts.system.shm_bytes;
  if (!shm) {
    if (failed(shm)) rows.push_back(row("shm", LinkState::unknown, "unknown"));
    return;
  }
  // Workers pass finished batches through /dev/shm: below 1 GiB a few image batches fill it.
  const bool small = *shm < (uint64_t{1} << 30);
  Link link = row("shm", small ? LinkState::limited : LinkState::ok, small ? "small" : "ok");
  link.args["size"] = format_bytes(*shm);
  link.evidence.push_back(seen(shm.source, link.args["size"]));
  rows.push_back(std::move(link));
}

void add_memory(const Input& input, std::vector<Link>& rows) {
  const facts::SystemFacts& system = input.facts.system;
  if (!system.ram_bytes) return;
  const bool limited = system.memory_limit_bytes && *system.memory_limit_bytes < *system.ram_bytes;
  const uint64_t usable = limited ? *system.memory_limit_bytes : *system.ram_bytes;
  uint64_t gpu_bytes = 0;
  for (const GpuView& gpu : input.gpus) {
    const bool shared = gpu.cuda != nullptr && gpu.cuda->integrated.value_or(false);
    if (gpu.nvml != nullptr && !shared) gpu_bytes += gpu.nvml->memory_total_bytes.value_or(0);
  }
  // A checkpoint passes through host memory once: less host memory than one GPU's share of it
  // starves the load.
  const uint64_t one_gpu = input.gpus.empty() ? 0 : gpu_bytes / input.gpus.size();
  const bool small = one_gpu > 0 && usable < one_gpu;
  Link link = row("memory", small ? LinkState::limited : LinkState::ok,
                  small     ? (limited ? "small_limit" : "small")
                  : limited ? "limit"
                            : "ok");
  link.args["size"] = format_bytes(usable);
  link.args["ram"] = format_bytes(*system.ram_bytes);
  link.args["gpu_memory"] = format_bytes(one_gpu);
  link.evidence.push_back(limited ? seen(system.memory_limit_bytes.source, link.args["size"])
                                  : seen(system.ram_bytes.source, link.args["ram"]));
  rows.push_back(std::move(link));
}

// Locked memory matters only to RDMA, so only where several GPUs could talk to other machines.
void add_memlock(const Input& input, std::vector<Link>& rows) {
  const Fact<uint64_t>& memlock = input.facts.system.memlock_bytes;
  if (!memlock || *memlock == UINT64_MAX || input.gpus.size() < 2) return;
  // The kernel's own default of 8 MiB (64 KiB before 5.16) is too little to register NCCL's
  // buffers.
  if (*memlock > (uint64_t{64} << 20)) return;
  Link link = row("memlock", LinkState::limited, "small");
  link.args["size"] = format_bytes(*memlock);
  link.evidence.push_back(seen(memlock.source, link.args["size"]));
  rows.push_back(std::move(link));
}

void add_pcie(const Input& input, std::vector<Link>& rows) {
  for (const GpuView& gpu : input.gpus) {
    if (gpu.nvml == nullptr || !gpu.nvml->pcie_width || !gpu.nvml->pcie_width_max ||
        *gpu.nvml->pcie_width == 0)
      continue;
    const facts::NvmlGpu& nvml = *gpu.nvml;
    const bool narrow = *nvml.pcie_width < *nvml.pcie_width_max;
    // The generation drops while a GPU is idle and rises under load: its maximum is what counts.
    const bool idle = nvml.pcie_gen && nvml.pcie_gen_max && *nvml.pcie_gen < *nvml.pcie_gen_max;
    Link link = row("pcie", narrow ? LinkState::limited : LinkState::ok,
                    narrow ? "narrow"
                    : idle ? "idle"
                           : "ok");
    link.args["gpu"] = gpu.label;
    link.args["width"] = std::to_string(*nvml.pcie_width);
    link.args["width_max"] = std::to_string(*nvml.pcie_width_max);
    link.args["gen"] = nvml.pcie_gen ? std::to_string(*nvml.pcie_gen) : "?";
    link.args["gen_max"] = nvml.pcie_gen_max ? std::to_string(*nvml.pcie_gen_max) : "?";
    link.evidence.push_back(seen(nvml.pcie_width));
    link.evidence.push_back(seen(nvml.pcie_width_max));
    rows.push_back(std::move(link));
  }
}

}  // namespace

std::vector<Link> list_host_limits(const Input& input) {
  std::vector<Link> rows;
  if (input.gpus.empty() || input.what_if) return rows;
  add_cores(input, rows);
  add_shm(input, rows);
  add_memory(input, rows);
  add_memlock(input, rows);
  add_pcie(input, rows);
  return rows;
}

}  // namespace cufit::checks
