// SPDX-License-Identifier: Apache-2.0
// GPUs of generations so far apart that no single wheel has code for all of them (6.1 beside 12.0).
// The cure is one environment per group, so the per-GPU findings would each give advice that breaks
// the other GPU.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/gpu_code.h"
#include "checks/kernel_modules.h"
#include "checks/torch_checks.h"
#include "checks/install/torch_command.h"
#include "checks/wheel_pick.h"

namespace cufit::checks {

namespace {

struct Share {
  std::vector<const GpuGroup*> groups;
  std::optional<WheelPick> pick;
};

std::vector<ComputeCapability> capabilities(const std::vector<const GpuGroup*>& groups) {
  std::vector<ComputeCapability> ccs;
  for (const GpuGroup* group : groups) ccs.push_back(group->cc);
  return ccs;
}

// From the newest GPU down, a group joins the first share whose wheel can still serve it.
std::vector<Share> shares_of(const Input& input, const std::vector<GpuGroup>& groups) {
  std::vector<const GpuGroup*> order;
  for (const GpuGroup& group : groups) order.push_back(&group);
  std::sort(order.begin(), order.end(),
            [](const GpuGroup* a, const GpuGroup* b) { return a->cc > b->cc; });
  std::vector<Share> shares;
  for (const GpuGroup* group : order) {
    bool placed = false;
    for (Share& share : shares) {
      std::vector<const GpuGroup*> together = share.groups;
      together.push_back(group);
      auto pick = pick_wheel(input, capabilities(together));
      if (!pick) continue;
      share = {together, pick};
      placed = true;
      break;
    }
    if (!placed) shares.push_back({{group}, pick_wheel(input, {group->cc})});
  }
  return shares;
}

std::string gpus_text(const Share& share) {
  std::vector<std::string> texts;
  for (const GpuGroup* group : share.groups) texts.push_back(group->text());
  return join(texts, ", ");
}

std::string indices(const Share& share) {
  std::vector<std::string> numbers;
  for (const GpuGroup* group : share.groups)
    for (const GpuView* gpu : group->gpus) numbers.push_back(std::to_string(gpu->index));
  std::sort(numbers.begin(), numbers.end());
  return join(numbers, ",");
}

// Linux: one kernel module serves all GPUs of a host, and Blackwell needs the open one that Pascal
// cannot use.
bool modules_conflict(const Input& input, const std::vector<GpuGroup>& groups) {
  std::vector<ComputeCapability> capabilities;
  for (const GpuGroup& group : groups) capabilities.push_back(group.cc);
  return need_both_modules(capabilities, input.knowledge) && !is_wsl(input.facts);
}

void fill(const Input& input, const facts::PythonEnv& env, const std::vector<GpuGroup>& groups,
          const std::vector<Share>& shares, Finding& made) {
  std::vector<std::string> lines, all;
  for (const Share& share : shares) {
    std::string wheel = share.pick ? "torch " + share.pick->torch + "+" + share.pick->tag : "-";
    lines.push_back(gpus_text(share) + ": " + wheel);
    all.push_back(gpus_text(share));
  }
  made.args = {{"gpus", join(all, "; ")},
               {"shares", join(lines, "; ")},
               {"gpus_a", gpus_text(shares[0])},
               {"gpus_b", gpus_text(shares[1])},
               {"indices_a", indices(shares[0])},
               {"indices_b", indices(shares[1])},
               {"install_a", install_text(input, env, shares[0].pick)},
               {"install_b", install_text(input, env, shares[1].pick)}};
  if (modules_conflict(input, groups)) made.variant = "kernel_module";
  for (const GpuGroup& group : groups)
    made.evidence.push_back(
        seen(group.gpus[0]->cc_source,
             "GPU " + std::to_string(group.gpus[0]->index) + ": " + group.cc.text()));
  made.evidence.push_back(table_says("data/wheels.toml", join(lines, "; ")));
}

}  // namespace

bool need_both_modules(const std::vector<ComputeCapability>& gpus,
                       const knowledge::Knowledge& knowledge) {
  bool open = false, proprietary = false;
  for (const ComputeCapability cc : gpus) {
    const knowledge::DriverWindow* window = knowledge.find_window(cc);
    if (window == nullptr) continue;
    open = open || window->kernel_module == "open";
    proprietary = proprietary || window->kernel_module == "proprietary";
  }
  return open && proprietary;
}

std::vector<Finding> check_mixed_gpus(const Input& input) {
  std::vector<Finding> found;
  std::vector<GpuGroup> groups = group_gpus(input);
  if (groups.size() < 2 || pick_wheel_for_machine(input)) return found;
  std::vector<Share> shares = shares_of(input, groups);
  if (shares.size() < 2) return found;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    TorchCode code = torch_code_of(input, *env, build);
    size_t served = 0, unserved = 0;
    for (const GpuGroup& group : groups) {
      Match match = match_code(code.code, group.cc, input.driver_cuda, input.knowledge).match;
      if (match == Match::cubin || match == Match::ptx) ++served;
      if (match == Match::none) ++unserved;
    }
    if (unserved == 0) continue;  // a private build that serves all, or nothing known
    Finding made = finding("mixed_gpu_generations", Severity::error, subject_of(*env));
    fill(input, *env, groups, shares, made);
    made.args["torch"] = build.release + (build.tag.empty() ? "" : "+" + build.tag);
    made.args["served"] = std::to_string(served);
    made.evidence.push_back(
        {code.from_table ? "table" : "file", code.where, list_archs(code.code)});
    found.push_back(std::move(made));
  }
  return found;
}

}  // namespace cufit::checks
