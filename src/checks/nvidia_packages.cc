// SPDX-License-Identifier: Apache-2.0
// The nvidia-* wheels of an environment against what torch's METADATA pins, and packages of two
// CUDA majors that write the same files. Which file would be loaded is the question of
// cuda_libraries.cc.
#include "base/format.h"
#include "base/shell_word.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

// One command for several requirements: every installer takes them one after the other at the end.
std::string install_all(const facts::PythonEnv& env, const std::vector<std::string>& requirements) {
  std::string command = install_command(env, requirements.front());
  for (size_t i = 1; i < requirements.size(); ++i) command += " " + shell_word(requirements[i]);
  return command;
}

struct Pin {
  std::string name, version;
};

// "nvidia-cudnn-cu13==9.19.0.56; platform_system == 'Linux'" -> name, version
bool parse_pin(const std::string& line, Pin& pin) {
  if (!starts_with(line, "nvidia-")) return false;
  const size_t at = line.find("==");
  const size_t stop = line.find(';');
  if (at == std::string::npos || (stop != std::string::npos && at > stop)) return false;
  pin.name = std::string(trim(std::string_view(line).substr(0, at)));
  while (!pin.name.empty() && (pin.name.back() == '(' || pin.name.back() == ' '))
    pin.name.pop_back();
  const size_t extra = pin.name.find('[');
  if (extra != std::string::npos) pin.name.resize(extra);
  const size_t end = line.find_first_of(" ;),", at + 2);
  pin.version = line.substr(at + 2, end == std::string::npos ? std::string::npos : end - at - 2);
  return true;
}

// Wheels of CUDA 12 and 13 that install into one directory (nvidia/cudnn, nvidia/nccl, ...): the
// last one installed wins. The others moved to nvidia/cu13 with CUDA 13 and stay apart.
constexpr const char* k_shared_folders[] = {"nvidia-cudnn", "nvidia-nccl", "nvidia-nvshmem",
                                            "nvidia-cusparselt"};

void same_files(const facts::PythonEnv& env, const TorchBuild& build,
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
  if (keep.empty()) keep.push_back("torch==" + build.release);
  const bool uv = starts_with(install_command(env, "torch"), "uv ");
  made.args["command"] =
      install_all(env, keep) + (uv ? " --reinstall" : " --force-reinstall --no-deps");
  findings.push_back(std::move(made));
}

void other_versions(const facts::PythonEnv& env, const facts::Distribution& torch,
                    const TorchBuild& build, std::vector<Finding>& findings) {
  std::vector<std::string> parts;
  std::vector<std::string> wanted;
  Finding made = finding("nvidia_pip_pkg_conflict", Severity::warning, subject_of(env));
  made.variant = "version";
  for (const std::string& line : torch.needs) {
    Pin pin;
    if (!parse_pin(line, pin) || contains(pin.version, "*")) continue;
    const facts::Distribution* have = find_distribution(env, pin.name);
    if (have == nullptr || have->version == pin.version) continue;
    parts.push_back(format("{} {} (torch: {})", pin.name, have->version, pin.version));
    wanted.push_back(pin.name + "==" + pin.version);
    made.evidence.push_back({"file", have->location, have->version});
  }
  if (parts.empty()) return;
  made.evidence.push_back({"file", torch.location + "/METADATA", join(wanted, " ")});
  made.args["packages"] = short_list(parts, 8);
  made.args["torch"] = build.release;
  made.args["env"] = env.path;
  made.args["command"] = install_all(env, wanted);
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_nvidia_packages(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    same_files(*env, build, findings);
    const facts::Distribution* torch = find_distribution(*env, "torch");
    if (torch != nullptr && torch->kind == "dist-info")
      other_versions(*env, *torch, build, findings);
  }
  return findings;
}

}  // namespace cufit::checks
