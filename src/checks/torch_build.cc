// SPDX-License-Identifier: Apache-2.0
// Is there a torch, and was it built for CUDA? Everything above the driver hangs on this.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/install/torch_command.h"
#include "checks/install/torch_step.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

// `made` is without a torch that uses the GPU: the wheel that fits, or what keeps all from fitting.
void add_install(const Input& input, const facts::PythonEnv& env, Finding& made) {
  const TorchStep step = torch_step(input, env);
  add_torch_step(env, step, made);
  const std::string& blocked = step.blocked;
  if (blocked.empty()) return;
  std::vector<std::string> names;
  for (const GpuView& gpu : input.gpus) names.push_back(gpu.name);
  made.args["gpu"] = join(names, ", ");
  made.variant = made.variant.empty() ? blocked : made.variant + "." + blocked;
}

void add_build_evidence(const facts::PythonEnv& env, const TorchBuild& build, Finding& made) {
  if (env.torch.version) made.evidence.push_back(seen(env.torch.version));
  if (!build.source.detail.empty()) made.evidence.push_back(seen(build.source, build.kind));
  if (torch_main_library(env) == nullptr && !env.binaries.empty())
    made.evidence.push_back({"file", env.torch.path + "/lib", "no libtorch_cuda.so"});
}

// A desktop or server wheel on a Jetson of JetPack 6 or older (Orin and before:
// integrated 5.3, 6.2, 7.2, 8.7) does not fit; JetPack 7 on Thor (11.0) and Orin uses the ordinary
// SBSA wheels of CUDA 13: where the driver is of CUDA 13.
bool generic_wheel_on_jetson(const Input& input, const TorchBuild& build) {
  if (!is_jetson(input.facts) || build.kind != "cuda" || !build.cuda) return false;
  const bool jetpack_7 = !input.driver_cuda || input.driver_cuda->part(0) >= 13;
  if (build.cuda->part(0) >= 13 && jetpack_7) return false;
  return starts_with(build.tag, "cu") && !build.release.empty();
}

}  // namespace

std::vector<Finding> check_torch_build(const Input& input) {
  std::vector<Finding> found;
  std::vector<const facts::PythonEnv*> envs = torch_envs(input.facts);
  const facts::PythonEnv* main = main_env(input.facts);
  if (envs.empty()) {
    // A dump that says nothing of torch and a machine that was not asked are not "not installed".
    if (input.facts.origin == "dump") return found;
    for (const facts::PythonEnv& env : input.facts.envs) {
      if (!failed(env.torch.version)) continue;
      found.push_back(
          cannot_tell("torch_not_installed", subject_of(env), why_missing(env.torch.version)));
      found.back().variant = "closed";
      found.back().args["path"] = env.torch.version.source.detail;
      return found;
    }
    Finding made =
        finding("torch_not_installed", Severity::warning, main ? subject_of(*main) : k_machine);
    made.args["envs"] = std::to_string(input.facts.envs.size());
    made.variant = main ? "" : "no_env";
    if (main && input.facts.envs.size() == 1) made.variant = "one";
    const std::string unblocked = made.variant;
    if (main) add_install(input, *main, made);
    // The project says which torch it wants; where the driver stands in the way, that goes first.
    const std::string project = install_project(input);
    if (!project.empty() && made.variant == unblocked) {
      made.args["install"] = project;
      if (main == nullptr) made.variant.clear();
      made.change.reset();
    }
    for (const facts::PythonEnv& env : input.facts.envs)
      made.evidence.push_back({"file", env.path, "no torch"});
    found.push_back(std::move(made));
    return found;
  }
  for (const facts::PythonEnv* env : envs) {
    TorchBuild build = torch_build_of(input, *env);
    if (build.kind == "cuda" && generic_wheel_on_jetson(input, build) &&
        env->torch.variant == build.tag) {
      Finding made = finding("jetson_wrong_wheel", Severity::error, subject_of(*env));
      made.args = {{"torch", build.release}, {"tag", build.tag}};
      made.evidence = {seen(input.facts.system.jetson), seen(build.source, build.cuda->text())};
      found.push_back(std::move(made));
    }
    if (build.kind != "cpu" && build.kind != "rocm" && build.kind != "xpu") continue;
    // Without an NVIDIA GPU a CPU build is simply right.
    if (input.gpus.empty()) continue;
    Finding made = finding("torch_not_cuda_build", Severity::error, subject_of(*env));
    made.variant = build.kind;
    made.args = {{"torch", build.release}, {"build", build.kind}};
    add_install(input, *env, made);
    add_build_evidence(*env, build, made);
    found.push_back(std::move(made));
  }
  return found;
}

}  // namespace cufit::checks
