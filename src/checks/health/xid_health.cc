// SPDX-License-Identifier: Apache-2.0
#include "checks/health/xid_health.h"

#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

bool has(const std::vector<uint32_t>& list, uint32_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

HealthLevel level_of_xid(const Input& input, const HealthRules& rules, uint32_t number) {
  if (rules.xid && has(*rules.xid, number)) return HealthLevel::error;
  if (rules.xid_warning && has(*rules.xid_warning, number)) return HealthLevel::warning;
  for (const knowledge::AlertXid& row : input.knowledge.alert_xids) {
    if (row.number != number) continue;
    const bool fatal = row.rule == "gpu_xid_fatal";
    // A list of the site's own stands in place of cufit's.
    if (fatal ? rules.xid.has_value() : rules.xid_warning.has_value()) return HealthLevel::off;
    return fatal ? HealthLevel::error : HealthLevel::warning;
  }
  return HealthLevel::off;
}

const knowledge::HealthXid* special_row(const Input& input, uint32_t number) {
  for (const knowledge::HealthXid& row : input.knowledge.health_xids)
    if (row.number == number) return &row;
  return nullptr;
}

// The GPU was reset since, as far as the driver shows it.
bool is_past(const Input& input, const GpuView* gpu, uint32_t number) {
  if (gpu == nullptr || gpu->nvml == nullptr) return false;
  const facts::NvmlGpu& nvml = *gpu->nvml;
  if (nvml.state_code.value_or(0) != 0) return false;
  if (nvml.recovery_action) return *nvml.recovery_action == "none";
  const knowledge::HealthXid* row = special_row(input, number);
  if (row == nullptr) return false;
  if (row->past == "answers") return bool(nvml.memory_used_bytes);
  return row->past == "ecc" && nvml.ecc_uncorrected_volatile && *nvml.ecc_uncorrected_volatile == 0;
}

XidFinding told(const Input& input, const facts::XidEvent& event, const GpuView* gpu, bool past) {
  const knowledge::XidRow* row = input.knowledge.find_xid(event.number);
  const std::string meaning = row != nullptr ? std::string(row->meaning) : "";
  XidFinding out;
  out.finding = finding("xid_seen", past ? Severity::warning : Severity::error,
                        gpu != nullptr ? subject_of(*gpu) : "GPU " + event.pci);
  Finding& made = out.finding;
  const knowledge::HealthXid* special = special_row(input, event.number);
  out.action = special != nullptr && !special->action.empty() ? special->action : "drain";
  if (out.action == "reboot") made.variant = "reboot";
  if (past) made.variant = "past";
  made.args["gpu"] = gpu != nullptr ? in_sentence(*gpu) : event.pci;
  made.args["index"] = gpu != nullptr ? std::to_string(gpu->index) : event.pci;
  made.args["number"] = std::to_string(event.number);
  made.args["meaning"] = meaning.empty() ? "no meaning is known" : meaning;
  made.evidence = {{to_string(input.facts.kernel.log.source.kind),
                    "Xid " + std::to_string(event.number) +
                        (event.count > 1 ? format(" ({}x)", event.count) : ""),
                    event.text}};
  return out;
}

const GpuView* listed_gpu(const Input& input, const Finding& finding) {
  for (const GpuView& gpu : input.gpus)
    if (gpu.nvml != nullptr && subject_of(gpu) == finding.subject) return &gpu;
  return nullptr;
}

// Each GPU that waits for something says so itself once it was reset: old lines are past then.
bool driver_tells_all(const Input& input, const std::vector<XidFinding>& found) {
  return std::all_of(found.begin(), found.end(), [&](const XidFinding& one) {
    const GpuView* gpu = listed_gpu(input, one.finding);
    return one.finding.variant == "past" || gpu == nullptr || gpu->nvml->recovery_action;
  });
}

// One step resets all that wait for it, or restarts the machine where one of them needs that: a GPU
// that NVML does not list cannot be reset.
void give_one_step(const Input& input, bool log_is_cleared, std::vector<XidFinding>& found) {
  std::vector<std::string> indices;
  bool reboot = false;
  for (const XidFinding& one : found) {
    if (one.finding.variant == "past") continue;
    const GpuView* gpu = listed_gpu(input, one.finding);
    reboot = reboot || gpu == nullptr || one.finding.variant == "reboot";
    const std::string index = gpu != nullptr ? std::to_string(gpu->index) : "";
    if (gpu != nullptr && std::find(indices.begin(), indices.end(), index) == indices.end())
      indices.push_back(index);
  }
  for (XidFinding& one : found) {
    one.finding.args["all"] = join(indices, ",");
    if (one.finding.variant == "past") continue;
    if (reboot)
      one.finding.variant = "reboot";
    else if (!log_is_cleared)
      one.finding.variant = "reset";
  }
}

}  // namespace

std::vector<XidFinding> judge_xids(const Input& input, const HealthRules& rules,
                                   const std::vector<uint32_t>& gpus) {
  std::vector<XidFinding> out;
  for (const facts::XidEvent& event : input.facts.kernel.xids) {
    const HealthLevel level = level_of_xid(input, rules, event.number);
    if (level == HealthLevel::off) continue;
    const GpuView* gpu = gpu_at(input, event.pci);
    // The host's log tells of all GPUs; a container answers for its own.
    const bool listed = gpu != nullptr && gpu->nvml != nullptr;
    if (!listed && in_container(input.facts)) continue;
    XidFinding made = told(input, event, gpu, is_past(input, gpu, event.number));
    if (level == HealthLevel::warning && made.finding.severity == Severity::error)
      made.finding.severity = Severity::warning;
    out.push_back(std::move(made));
  }
  // Clearing the log clears the lines of all GPUs. Where it stays, a step is for those that were
  // asked for alone: others may be at work.
  const bool clears = !driver_tells_all(input, out);
  if (!clears && !gpus.empty())
    std::erase_if(out, [&](const XidFinding& one) {
      const GpuView* gpu = listed_gpu(input, one.finding);
      return gpu == nullptr || std::find(gpus.begin(), gpus.end(), gpu->index) == gpus.end();
    });
  give_one_step(input, clears, out);
  return out;
}

}  // namespace cufit::checks
