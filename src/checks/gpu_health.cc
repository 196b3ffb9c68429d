// SPDX-License-Identifier: Apache-2.0
// Is the hardware ill? Xid lines of the kernel log, judged by data/xids.toml, and NVML's own
// counters. What was only corrected is no error: ECC memory corrects bits all its life.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

bool answers(const GpuView* gpu) {
  return gpu != nullptr &&
         ((gpu->cuda != nullptr && gpu->cuda->compute_check.value_or("") == "ok") ||
          (gpu->nvml != nullptr && gpu->nvml->memory_used_bytes));
}

Severity severity_of(std::string_view id, const GpuView* gpu) {
  if (id == "app_kernel_fault")
    return Severity::note;  // a program's fault; hardware and driver are fine
  // The log tells of the past. A GPU that answers again was reset since.
  return answers(gpu) ? Severity::warning : Severity::error;
}

constexpr int k_state_inforom = 14, k_state_lost = 15, k_state_reset = 16;  // nvmlReturn_t

// What NVML itself says of a GPU, now and not once (state_code).
void judge_state(const GpuView& gpu, std::vector<Finding>& findings) {
  if (gpu.nvml == nullptr || !gpu.nvml->state_code) return;
  const int code = *gpu.nvml->state_code;
  const char* id = code == k_state_lost      ? "gpu_fell_off_bus"
                   : code == k_state_reset   ? "gpu_needs_reset"
                   : code == k_state_inforom ? "gpu_inforom_damaged"
                                             : nullptr;
  if (id == nullptr) return;
  const auto known = std::find_if(findings.begin(), findings.end(), [&](const Finding& one) {
    return one.id == id && one.subject == subject_of(gpu);
  });
  Finding made =
      known != findings.end() ? std::move(*known) : finding(id, Severity::error, subject_of(gpu));
  made.severity = code == k_state_inforom ? Severity::warning : Severity::error;
  made.variant = "";  // not "it answers again": NVML says that it does not
  made.args["gpu"] = in_sentence(gpu);
  made.args["index"] = std::to_string(gpu.index);
  made.evidence.push_back(seen(gpu.nvml->state_code));
  if (known != findings.end())
    *known = std::move(made);
  else
    findings.push_back(std::move(made));
}

void add_health(const GpuView& gpu, Severity severity, const char* variant, Evidence proof,
                Finding& made) {
  if (made.id.empty()) {
    made = finding("gpu_memory_ecc", severity, subject_of(gpu));
    made.variant = variant;
    made.args["gpu"] = in_sentence(gpu);
    made.args["index"] = std::to_string(gpu.index);
  }
  made.evidence.push_back(std::move(proof));
}

}  // namespace

std::vector<Finding> check_xids(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::XidEvent& event : input.facts.kernel.xids) {
    const knowledge::XidRow* row = input.knowledge.find_xid(event.number);
    if (row == nullptr || row->finding.empty()) continue;
    const GpuView* gpu = gpu_at(input, event.pci);
    // Only memory that NVML still calls ill is ill: Xid 63 alone records a repair that succeeded.
    if (row->finding == "gpu_memory_ecc" && event.number == 63 && gpu != nullptr &&
        gpu->nvml != nullptr && gpu->nvml->remap_pending && !*gpu->nvml->remap_pending)
      continue;
    const std::string subject = gpu != nullptr ? subject_of(*gpu) : "GPU " + event.pci;
    auto same = [&](const Finding& old) {
      return old.id == row->finding && old.subject == subject;
    };
    auto found = std::find_if(findings.begin(), findings.end(), same);
    const Evidence line{to_string(input.facts.kernel.log.source.kind),
                        "Xid " + std::to_string(event.number) +
                            (event.count > 1 ? format(" ({}x)", event.count) : ""),
                        event.text};
    if (found != findings.end()) {
      found->evidence.push_back(line);
      continue;
    }
    Finding made = finding(std::string(row->finding), severity_of(row->finding, gpu), subject);
    if (made.id == "gpu_memory_ecc") made.variant = "xid";
    if (made.severity == Severity::warning && made.id == "gpu_fell_off_bus") made.variant = "back";
    made.args["gpu"] = gpu != nullptr ? in_sentence(*gpu) : event.pci;
    made.args["index"] = gpu != nullptr ? std::to_string(gpu->index) : event.pci;
    made.args["xid"] = std::to_string(event.number);
    made.args["address"] = event.pci;
    made.args["meaning"] = std::string(row->meaning);
    made.evidence.push_back(line);
    made.evidence.push_back(
        table_says("data/xids.toml", format("{}: {}", row->number, row->meaning)));
    findings.push_back(std::move(made));
  }
  for (const GpuView& gpu : input.gpus) judge_state(gpu, findings);
  return findings;
}

// Links that are up against those that the GPU has. Cards without a bridge have none up; so only
// where the others of the same kind, or a machine with NVSwitch, show that they should be.
std::vector<Finding> check_nvlinks(const Input& input) {
  std::vector<Finding> findings;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.nvml == nullptr || !gpu.nvml->nvlinks_active || !gpu.nvml->nvlinks_total) continue;
    const uint32_t active = *gpu.nvml->nvlinks_active, total = *gpu.nvml->nvlinks_total;
    if (active >= total) continue;
    const bool others = std::any_of(input.gpus.begin(), input.gpus.end(), [&](const GpuView& one) {
      return one.name == gpu.name && one.nvml != nullptr &&
             one.nvml->nvlinks_active.value_or(0) > active;
    });
    if (!others && !(input.facts.kernel.nvswitch && active > 0)) continue;
    Finding made = finding("nvlink_degraded", Severity::warning, subject_of(gpu));
    made.args = {{"gpu", in_sentence(gpu)},
                 {"index", std::to_string(gpu.index)},
                 {"active", std::to_string(active)},
                 {"total", std::to_string(total)}};
    made.evidence = {seen(gpu.nvml->nvlinks_active), seen(gpu.nvml->nvlinks_total)};
    findings.push_back(std::move(made));
  }
  return findings;
}

std::vector<Finding> check_memory_health(const Input& input) {
  std::vector<Finding> findings;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.nvml == nullptr) continue;
    const facts::NvmlGpu& nvml = *gpu.nvml;
    Finding made;
    if (nvml.remap_failed.value_or(false))
      add_health(gpu, Severity::error, "remap_failed", seen(nvml.remap_failed), made);
    if (nvml.remap_pending.value_or(false))
      add_health(gpu, Severity::warning, "remap_pending", seen(nvml.remap_pending), made);
    if (nvml.retirement_pending.value_or(false))
      add_health(gpu, Severity::warning, "retirement_pending", seen(nvml.retirement_pending), made);
    if (nvml.ecc_uncorrected_volatile.value_or(0) > 0)
      add_health(gpu, Severity::warning, "uncorrected", seen(nvml.ecc_uncorrected_volatile), made);
    if (!made.id.empty()) {
      made.args["uncorrected"] = std::to_string(nvml.ecc_uncorrected_volatile.value_or(0));
      made.args["remapped"] = std::to_string(nvml.remapped_uncorrectable.value_or(0));
      findings.push_back(std::move(made));
    }
  }
  return findings;
}

}  // namespace cufit::checks
