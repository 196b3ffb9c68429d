// SPDX-License-Identifier: Apache-2.0
// The nvidia-* wheels of an environment against what torch's METADATA pins, and packages of two
// CUDA majors that write the same files. Which file would be loaded is the question of
// cuda_libraries.cc.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/install/after_step.h"
#include "checks/install/torch_command.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

// Wheels of CUDA 12 and 13 that install into one directory (nvidia/cudnn, nvidia/nccl, ...): the
// last one installed wins. The others moved to nvidia/cu13 with CUDA 13 and stay apart.
constexpr const char* k_shared_folders[] = {"nvidia-cudnn", "nvidia-nccl", "nvidia-nvshmem",
                                            "nvidia-cusparselt"};

void same_files(const Input& input, const facts::PythonEnv& env, const TorchBuild& build,
                std::vector<Finding>& findings) {
  std::vector<std::string> parts;
  // Which of them was installed last is not written anywhere, so the right one may have won.
  Finding made = finding("nvidia_pip_pkg_conflict", Severity::warning, subject_of(env));
  std::vector<std::string> keep;
  for (const char* base : k_shared_folders) {
    std::vector<const facts::Distribution*> found;
    for (const char* suffix : {"-cu11", "-cu12", "-cu13"}) {
      const facts::Distribution* package = find_distribution(env, std::string(base) + suffix);
      if (package != nullptr) found.push_back(package);
    }
    if (found.size() < 2) continue;
    for (const facts::Distribution* package : found) {
      parts.push_back(package->name + " " + package->version);
      made.evidence.push_back({"file", package->location, package->version});
      if (build.cuda && ends_with(package->name, "-cu" + std::to_string(build.cuda->part(0))))
        keep.push_back(package->name + "==" + package->version);
    }
  }
  if (parts.empty()) return;
  made.args["packages"] = short_list(parts, 8);
  made.args["torch"] = build.release + (build.tag.empty() ? "" : "+" + build.tag);
  made.args["env"] = env.path;
  made.args["command"] = keep.empty() ? repair_command(input, env, build.release, build.tag)
                                      : install_packages(input, env, keep, InstallKind::repair);
  findings.push_back(std::move(made));
}

void other_versions(const Input& input, const facts::PythonEnv& env,
                    const facts::Distribution& torch, const TorchBuild& build,
                    std::vector<Finding>& findings) {
  std::vector<std::string> parts;
  std::vector<std::string> wanted;
  Finding made = finding("nvidia_pip_pkg_conflict", Severity::warning, subject_of(env));
  made.variant = "version";
  for (const facts::Distribution& have : *env.distributions) {
    if (!starts_with(have.name, "nvidia-") || find_distribution(env, have.name) != &have) continue;
    const std::string pin = exact_pin(torch, have.name);
    if (pin.empty() || have.version == pin) continue;
    parts.push_back(format("{} {} (torch: {})", have.name, have.version, pin));
    wanted.push_back(have.name + "==" + pin);
    made.evidence.push_back({"file", have.location, have.version});
  }
  if (parts.empty()) return;
  made.evidence.push_back({"file", torch.location + "/METADATA", join(wanted, " ")});
  made.args["packages"] = short_list(parts, 8);
  made.args["torch"] = build.release;
  made.args["env"] = env.path;
  made.args["command"] = install_packages(input, env, wanted);
  made.change = packages_change(env, wanted);
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_nvidia_packages(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    same_files(input, *env, build, findings);
    const facts::Distribution* torch = find_distribution(*env, "torch");
    if (torch != nullptr && torch->kind == "dist-info")
      other_versions(input, *env, *torch, build, findings);
  }
  return findings;
}

}  // namespace cufit::checks
