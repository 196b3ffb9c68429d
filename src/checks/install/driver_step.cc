// SPDX-License-Identifier: Apache-2.0
#include "checks/install/driver_step.h"

#include <algorithm>

#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

uint32_t floor_of_cuda(const Input& input, const Version& cuda) {
  const std::optional<Version> family = cuda.part(0) >= 11
                                            ? input.knowledge.family_floor(cuda.part(0))
                                            : input.knowledge.full_driver(cuda);
  return family ? family->part(0) : 0;
}

std::optional<Version> cuda_of_main(const Input& input) {
  const facts::PythonEnv* env = main_env(input.facts);
  if (env == nullptr || !has_torch(*env)) return std::nullopt;
  const TorchBuild build = torch_build_of(input, *env);
  return build.kind == "cuda" ? build.cuda : std::nullopt;
}

}  // namespace

DriverNeed driver_need(const Input& input, const std::optional<Version>& cuda) {
  DriverNeed need;
  uint32_t last = 0;  // no newer branch drives all GPUs
  for (const GpuView& gpu : input.gpus) {
    const knowledge::DriverWindow* window = gpu.cc ? input.knowledge.find_window(*gpu.cc) : nullptr;
    if (window == nullptr) continue;
    need.floor = std::max(need.floor, window->first_branch);
    need.open_module = need.open_module || window->kernel_module == "open";
    if (window->last_branch != 0 && (last == 0 || window->last_branch < last))
      last = window->last_branch;
  }
  const std::optional<Version> runs = cuda ? cuda : cuda_of_main(input);
  if (runs) need.floor = std::max(need.floor, floor_of_cuda(input, *runs));
  if (need.floor == 0) return need;
  need.branch = input.knowledge.supported_branch(need.floor);
  if (last != 0 && need.branch > last && need.floor <= last) need.branch = last;
  return need;
}

void add_driver_args(const DriverNeed& need, std::map<std::string, std::string>& args) {
  if (need.branch == 0) return;
  args["branch"] = std::to_string(need.branch);
  args["ubuntu"] =
      "nvidia-driver-" + std::to_string(need.branch) + (need.open_module ? "-open" : "");
}

std::string driver_place(const facts::Facts& facts) {
  return is_wsl(facts) ? "wsl" : in_container(facts) ? "container" : "";
}

}  // namespace cufit::checks
