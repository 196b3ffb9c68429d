// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/obstacle.h"

#include "base/format.h"
#include "checks/doctor.h"
#include "checks/evidence.h"
#include "checks/kernel_modules.h"

namespace cufit::resolve {

std::optional<checks::Finding> obstacle_of(const facts::Facts& facts, const Target& target,
                                           const knowledge::Knowledge& knowledge) {
  if (facts.cufit_version.empty() && facts.envs.empty()) return std::nullopt;
  size_t gpus = target.unknown_gpus.size();
  for (const TargetGpu& gpu : target.gpus) gpus += gpu.count;
  for (checks::Finding& one : checks::examine(facts, knowledge).findings) {
    const bool whole = one.subject == checks::k_machine || one.subject == "container" ||
                       (gpus == 1 && starts_with(one.subject, "GPU "));
    if (one.severity == checks::Severity::error && whole && one.id != "no_nvidia_gpu")
      return std::move(one);
  }
  return std::nullopt;
}

bool modules_conflict(const Target& target, const knowledge::Knowledge& knowledge) {
  std::vector<ComputeCapability> capabilities;
  for (const TargetGpu& gpu : target.gpus) capabilities.push_back(gpu.cc);
  return checks::need_both_modules(capabilities, knowledge) && !target.wsl;
}

}  // namespace cufit::resolve
