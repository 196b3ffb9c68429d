// SPDX-License-Identifier: Apache-2.0
// Do torchvision, torchaudio and triton belong to this torch? The packages' own Requires-Dist lines
// speak first; the release table only where they say nothing.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/install/after_step.h"
#include "checks/install/restore_torch.h"
#include "checks/install/torch_command.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

std::string minor_of(std::string_view version) {
  const std::optional<Version> parsed = parse_version(version);
  return parsed ? format("{}.{}", parsed->part(0), parsed->part(1)) : std::string();
}

bool same_release(std::string_view a, std::string_view b) {
  return public_version(a) == public_version(b);
}

struct Partner {
  const char* name;
  std::string_view knowledge::TorchRelease::*column;
};

Finding mismatch(const facts::PythonEnv& env, const facts::Distribution& partner,
                 const std::string& torch, Severity severity, const char* variant) {
  Finding made = finding("torch_family_mismatch", severity, subject_of(env));
  made.variant = variant;
  made.args["partner"] = partner.name;
  made.args["have"] = partner.version;
  made.args["torch"] = torch;
  made.args["env"] = env.path;
  made.evidence.push_back({"file", partner.location, partner.version});
  made.evidence.push_back(seen(env.torch.version));
  return made;
}

// cu130 -> 13, cu126 -> 12; 0 = not a CUDA tag
uint32_t tag_major(std::string_view tag) {
  return starts_with(tag, "cu") && tag.size() >= 4 ? major_of(tag.substr(2, tag.size() - 3)) : 0;
}

void judge_tag(const Input& input, const facts::PythonEnv& env, const facts::Distribution& partner,
               const TorchBuild& build, std::vector<Finding>& findings) {
  const std::string tag(local_version(partner.version));
  if (tag.empty() || build.tag.empty() || tag == build.tag) return;
  const bool cpu = tag == "cpu" && build.kind == "cuda";
  // torchvision compares CUDA majors only and refuses to import when they differ.
  const bool major =
      tag_major(tag) != 0 && tag_major(build.tag) != 0 && tag_major(tag) != tag_major(build.tag);
  if (!cpu && !major) return;
  Finding made = mismatch(env, partner, build.release + "+" + build.tag, Severity::error,
                          cpu ? "cpu" : "cuda");
  made.args["need"] = std::string(public_version(partner.version)) + "+" + build.tag;
  made.args["command"] = partners_command(input, env, build.release, build.tag);
  made.change = torch_change(env, build.release, build.tag);
  findings.push_back(std::move(made));
}

// The torch that a partner's release came out with, by the table; empty: not in it.
std::string torch_of(const Input& input, const Partner& row, std::string_view partner) {
  for (const knowledge::TorchRelease& release : input.knowledge.torch_releases)
    if (same_release(release.*row.column, partner)) return std::string(release.version);
  return {};
}

bool judge_version(const Input& input, const facts::PythonEnv& env,
                   const facts::Distribution& partner, const Partner& row, const TorchBuild& build,
                   std::vector<Finding>& findings) {
  const knowledge::TorchRelease* release = input.knowledge.find_torch(build.release);
  const std::string wanted_torch = exact_pin(partner, "torch");
  std::string need = release != nullptr ? std::string(release->*row.column) : "";
  bool fits = true, minor = false;
  if (!wanted_torch.empty()) {
    fits = same_release(wanted_torch, build.release);
    minor = !fits && minor_of(wanted_torch) == minor_of(build.release);
  } else if (!need.empty()) {
    fits = same_release(need, partner.version) || minor_of(need) == minor_of(partner.version);
  }
  if (fits) return false;
  // Another patch release has the same interfaces in practice; another minor release does not.
  Finding made = mismatch(env, partner, build.release, minor ? Severity::note : Severity::error,
                          minor ? "patch" : "");
  const std::string wants =
      wanted_torch.empty() ? torch_of(input, row, partner.version) : wanted_torch;
  made.args["wants"] = wants;
  made.args["need"] = need.empty() ? "?" : need;
  made.args["command"] = partners_command(input, env, build.release, build.tag);
  made.change = torch_change(env, build.release, build.tag);
  if (need.empty()) made.variant = "pin";
  if (wants.empty()) made.variant = "other";
  // It belongs to the torch that a program wants, which somebody replaced.
  const auto restore = minor ? std::nullopt : restore_torch(input, env);
  if (restore && same_release(restore->torch, wants)) {
    made.variant = "replaced";
    made.args["command"] = restore->command;
    made.args["program"] = restore->package + " " + restore->version;
    made.change = restore->change;
  }
  if (!wanted_torch.empty())
    made.evidence.push_back({"file", partner.location + "/METADATA", "torch==" + wanted_torch});
  else
    made.evidence.push_back(table_says(
        "data/wheels.toml", format("torch {}: {} {}", build.release, partner.name, need)));
  findings.push_back(std::move(made));
  return true;
}

void judge_triton(const Input& input, const facts::PythonEnv& env, const TorchBuild& build,
                  std::vector<Finding>& findings) {
  const facts::Distribution* torch = find_distribution(env, "torch");
  const facts::Distribution* triton = find_distribution(env, "triton");
  if (torch == nullptr || triton == nullptr) return;
  const std::string need = exact_pin(*torch, "triton");
  if (need.empty() || same_release(need, triton->version)) return;
  const bool minor = minor_of(need) ==
                     minor_of(triton->version);  // also what "triton~=3.8.0" of torch 2.14 allows
  Finding made =
      mismatch(env, *triton, build.release, minor ? Severity::note : Severity::warning, "triton");
  made.args["need"] = need;
  made.args["wants"] = build.release;
  made.args["command"] = install_packages(input, env, {"triton==" + need});
  made.change = packages_change(env, {"triton==" + need});
  made.evidence.push_back({"file", torch->location + "/METADATA", "triton==" + need});
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_torch_family(const Input& input) {
  const Partner partners[] = {{"torchvision", &knowledge::TorchRelease::torchvision},
                              {"torchaudio", &knowledge::TorchRelease::torchaudio}};
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    // A build without CUDA is its own finding and is replaced whole.
    if (build.release.empty() || build.kind == "cpu") continue;
    for (const Partner& row : partners) {
      const facts::Distribution* partner = find_distribution(*env, row.name);
      if (partner == nullptr) continue;
      if (!judge_version(input, *env, *partner, row, build, findings))
        judge_tag(input, *env, *partner, build, findings);
    }
    judge_triton(input, *env, build, findings);
  }
  return findings;
}

}  // namespace cufit::checks
