// SPDX-License-Identifier: Apache-2.0
// States of a healthy GPU that change what a program gets: slowed by heat or power, full of others'
// memory, a compute or MIG mode that hides it, a PCIe link with fewer lanes than it could have.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

Finding about(const char* id, Severity severity, const GpuView& gpu) {
  Finding made = finding(id, severity, subject_of(gpu));
  made.args["gpu"] = in_sentence(gpu);
  made.args["index"] = std::to_string(gpu.index);
  return made;
}

void throttled(const GpuView& gpu, std::vector<Finding>& findings) {
  if (!gpu.nvml->throttle) return;
  // A power cap reached under load (sw_power_cap) is how a GPU is meant to run; these are not.
  std::vector<std::string> reasons;
  for (const std::string& reason : *gpu.nvml->throttle) {
    if (reason == "hw_thermal_slowdown" || reason == "sw_thermal_slowdown" ||
        reason == "hw_power_brake_slowdown")
      reasons.push_back(reason);
  }
  if (reasons.empty()) return;
  Finding made = about("gpu_throttled", Severity::warning, gpu);
  if (reasons.front() == "hw_power_brake_slowdown") made.variant = "power";
  made.args["reason"] = join(reasons, ", ");
  made.args["temperature"] =
      gpu.nvml->temperature_c ? std::to_string(*gpu.nvml->temperature_c) : "?";
  made.evidence.push_back(seen(gpu.nvml->throttle.source, join(reasons, ", ")));
  if (gpu.nvml->temperature_c) made.evidence.push_back(seen(gpu.nvml->temperature_c));
  findings.push_back(std::move(made));
}

void memory_in_use(const GpuView& gpu, std::vector<Finding>& findings) {
  const facts::NvmlGpu& nvml = *gpu.nvml;
  if (!nvml.memory_total_bytes || !nvml.memory_used_bytes || *nvml.memory_total_bytes == 0) return;
  if (nvml.mig_current.value_or(false)) return;  // the total is not what an instance has
  if (*nvml.memory_used_bytes < *nvml.memory_total_bytes / 2) return;
  Finding made = about("gpu_memory_in_use", Severity::note, gpu);
  made.args["used"] = format_bytes(*nvml.memory_used_bytes);
  made.args["total"] = format_bytes(*nvml.memory_total_bytes);
  std::vector<std::string> names;
  if (nvml.processes) {
    for (const facts::GpuProcess& process : *nvml.processes)
      names.push_back(process.name.empty() ? format("PID {}", process.pid)
                                           : format("{} ({})", process.name, process.pid));
  }
  // In a container NVML does not name processes of other containers.
  made.variant = names.empty() ? "unnamed" : "";
  made.args["processes"] = names.empty() ? "?" : short_list(names, 4);
  made.evidence.push_back(seen(nvml.memory_used_bytes.source,
                               format("{} / {}", made.args["used"], made.args["total"])));
  findings.push_back(std::move(made));
}

bool has_compute_process(const facts::NvmlGpu& nvml) {
  if (!nvml.processes) return false;
  for (const facts::GpuProcess& process : *nvml.processes) {
    if (process.kind == "compute") return true;
  }
  return false;
}

void mode_config(const GpuView& gpu, std::vector<Finding>& findings) {
  const facts::NvmlGpu& nvml = *gpu.nvml;
  const std::string mode = nvml.compute_mode.value_or("default");
  if (mode != "default") {
    const bool taken = has_compute_process(nvml);
    const bool blocks = mode == "prohibited" || taken;
    Finding made = about("gpu_mode_config", blocks ? Severity::error : Severity::note, gpu);
    made.variant = mode == "prohibited" ? "prohibited" : taken ? "exclusive_taken" : "exclusive";
    made.args["mode"] = mode;
    made.evidence.push_back(seen(nvml.compute_mode));
    findings.push_back(std::move(made));
  }
  if (nvml.mig_current.value_or(false) && nvml.mig_instances.empty()) {
    // A container or an unprivileged user may not see instances that are not his: then CUDA
    // decides.
    if (gpu.cuda != nullptr) return;
    Finding made = about("gpu_mode_config", Severity::error, gpu);
    made.variant = "mig_empty";
    made.evidence.push_back(seen(nvml.mig_current));
    findings.push_back(std::move(made));
  } else if (nvml.mig_current && nvml.mig_pending && *nvml.mig_current != *nvml.mig_pending) {
    Finding made = about("gpu_mode_config", Severity::note, gpu);
    made.variant = "mig_pending";
    made.args["mode"] = *nvml.mig_pending ? "enabled" : "disabled";
    made.evidence.push_back(seen(nvml.mig_pending));
    findings.push_back(std::move(made));
  } else if (nvml.mig_instances.size() > 1) {
    Finding made = about("gpu_mode_config", Severity::note, gpu);
    made.variant = "mig_one_instance";
    made.args["count"] = std::to_string(nvml.mig_instances.size());
    made.args["instance"] = nvml.mig_instances.front().name;
    made.evidence.push_back({"nvml", "nvmlDeviceGetMigDeviceHandleByIndex", made.args["count"]});
    findings.push_back(std::move(made));
  }
}

}  // namespace

std::vector<Finding> check_gpu_state(const Input& input) {
  std::vector<Finding> findings;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.nvml == nullptr) continue;
    throttled(gpu, findings);
    memory_in_use(gpu, findings);
    mode_config(gpu, findings);
  }
  return findings;
}

// Width only: an idle GPU lowers its link's generation to save power and raises it again under
// load; lanes it keeps. NVML's maximum is that of GPU and slot together, so x8 of x8 in a narrow
// slot says nothing here.
std::vector<Finding> check_pcie_link(const Input& input) {
  std::vector<Finding> findings;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.nvml == nullptr || !gpu.nvml->pcie_width || !gpu.nvml->pcie_width_max) continue;
    if (*gpu.nvml->pcie_width == 0 || *gpu.nvml->pcie_width >= *gpu.nvml->pcie_width_max) continue;
    Finding made = about("pcie_link_degraded", Severity::note, gpu);
    made.args["have"] = std::to_string(*gpu.nvml->pcie_width);
    made.args["max"] = std::to_string(*gpu.nvml->pcie_width_max);
    made.evidence.push_back(seen(gpu.nvml->pcie_width));
    made.evidence.push_back(seen(gpu.nvml->pcie_width_max));
    findings.push_back(std::move(made));
  }
  return findings;
}

}  // namespace cufit::checks
