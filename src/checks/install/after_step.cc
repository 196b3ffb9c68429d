// SPDX-License-Identifier: Apache-2.0
#include "checks/install/after_step.h"

#include <algorithm>

#include "base/format.h"
#include "checks/doctor.h"
#include "checks/torch_env.h"
#include "formats/python/requirement.h"

namespace cufit::checks {
namespace {

constexpr const char* k_assumed = "after the step";

template <class T>
Fact<T> assumed(T value) {
  return known(std::move(value), SourceKind::assumed, k_assumed);
}

facts::PythonEnv* find_env(facts::Facts& facts, const std::string& path) {
  for (facts::PythonEnv& env : facts.envs)
    if (env.path == path) return &env;
  return nullptr;
}

// Installed in this version, whole.
void put(facts::PythonEnv& env, const std::string& name, const std::string& version) {
  std::vector<facts::Distribution> all =
      env.distributions ? *env.distributions : std::vector<facts::Distribution>();
  std::erase_if(all, [&](const facts::Distribution& one) { return one.name == name; });
  facts::Distribution made;
  made.name = name;
  made.version = version;
  made.kind = "dist-info";
  all.push_back(std::move(made));
  std::sort(all.begin(), all.end(), [](const facts::Distribution& a, const facts::Distribution& b) {
    return a.name < b.name;
  });
  env.distributions = assumed(std::move(all));
}

bool is_of_torch(const facts::Distribution& one) {
  return starts_with(one.name, "nvidia-") || one.name == "triton" ||
         starts_with(one.name, "pytorch") || one.name == "libtorch" || one.name == "cpuonly" ||
         one.name == "cuda-toolkit" || (one.kind == "leftover" && contains(one.name, "orch"));
}

// Torch's own libraries come with it; what it needs of CUDA the installer chooses for it.
void replace_torch(facts::PythonEnv& env, const Change& change,
                   const knowledge::Knowledge& knowledge) {
  const knowledge::TorchRelease* release = knowledge.find_torch(change.torch);
  const std::string local = change.tag.empty() ? "" : "+" + change.tag;
  const knowledge::CudaTag* tag = knowledge.find_cuda_tag(change.tag);
  std::erase_if(env.binaries, [&](const facts::Binary& one) { return is_torch_binary(env, one); });
  if (env.distributions) std::erase_if(*env.distributions.value, is_of_torch);
  put(env, "torch", change.torch + local);
  for (const auto& [name, version] : {std::pair<const char*, std::string_view>{
                                          "torchvision", release ? release->torchvision : ""},
                                      {"torchaudio", release ? release->torchaudio : ""}}) {
    if (find_distribution(env, name) == nullptr) continue;
    // (clang 14 captures no structured binding.)
    std::erase_if(env.binaries, [partner = std::string(name)](const facts::Binary& one) {
      return one.package == partner;
    });
    if (!version.empty()) put(env, name, std::string(version) + local);
  }
  env.torch = {};
  env.torch.path = env.path + "/torch";
  env.torch.version = assumed(change.torch + local);
  env.torch.variant = change.tag;
  // As version.py has it, without the update of the toolkit ("12.8" of 12.8.1).
  const auto cuda = tag != nullptr ? parse_version(tag->cuda) : std::nullopt;
  env.torch.cuda = cuda ? assumed(Version{{cuda->part(0), cuda->part(1)}}.text())
                        : missing<std::string>(WhyNot::not_present, SourceKind::assumed, k_assumed);
  env.torch.hip = missing<std::string>(WhyNot::not_present, SourceKind::assumed, k_assumed);
  env.loads.clear();
  env.shadowed.clear();
  env.torch_run = {};
}

// In the place of the old one: with another Python nothing that is installed goes along.
void add_new_env(facts::Facts& facts, const Change& change, const knowledge::Knowledge& knowledge) {
  facts::PythonEnv fresh;
  std::erase_if(facts.envs, [&](const facts::PythonEnv& env) { return env.path == change.env; });
  for (facts::PythonEnv& env : facts.envs) env.active = false;
  fresh.path = "torch-env";
  fresh.kind = "venv";
  fresh.active = true;
  fresh.installer = "pip";
  fresh.python = assumed(change.python);
  fresh.distributions = assumed(std::vector<facts::Distribution>());
  replace_torch(fresh, change, knowledge);
  facts.envs.insert(facts.envs.begin(), std::move(fresh));
}

// `other_files`: the new ones are not known before they are there.
void put_package(facts::PythonEnv& env, const std::string& text, bool other_files) {
  const auto requirement = formats::parse_requirement(text);
  if (!requirement) return;
  if (other_files)
    std::erase_if(env.binaries,
                  [&](const facts::Binary& one) { return one.package == requirement->name; });
  const facts::Distribution* have = find_distribution(env, requirement->name);
  std::string version = have != nullptr ? have->version : "";
  for (const formats::VersionClause& clause : requirement->clauses)
    if (clause.op == "==") version = clause.version;
  // "numpy<2": some version that satisfies it; which, the installer chooses.
  if (!requirement->clauses.empty() && !formats::satisfies(requirement->clauses, version))
    version.clear();
  put(env, requirement->name, version);
  for (facts::Binary& binary : env.binaries)
    if (binary.package == requirement->name) binary.damage.clear(), binary.unreadable.clear();
  std::erase_if(env.loads, [&](const facts::LoadedLibrary& one) {
    return one.path.empty() && brings_library(requirement->name, one.name);
  });
}

}  // namespace

Change torch_change(const facts::PythonEnv& env, std::string torch, std::string tag,
                    std::string python) {
  Change change;
  change.env = env.path;
  change.torch = std::move(torch), change.tag = std::move(tag), change.python = std::move(python);
  return change;
}

Change packages_change(const facts::PythonEnv& env, std::vector<std::string> requirements) {
  Change change;
  change.kind = Change::Kind::packages;
  change.env = env.path;
  change.requirements = std::move(requirements);
  return change;
}

Change driver_change(uint32_t branch) {
  Change change;
  change.kind = Change::Kind::driver;
  change.driver = std::to_string(branch);
  return change;
}

facts::Facts after_step(facts::Facts facts, const Change& change,
                        const knowledge::Knowledge& knowledge) {
  if (!change.driver.empty())
    if (Result<facts::Facts> after = assume(facts, {{}, change.driver}, knowledge))
      facts = std::move(*after);
  if (change.kind == Change::Kind::driver) return facts;
  if (change.kind == Change::Kind::torch && !change.python.empty()) {
    add_new_env(facts, change, knowledge);
    return facts;
  }
  facts::PythonEnv* env = find_env(facts, change.env);
  if (env == nullptr) return facts;
  if (change.kind == Change::Kind::torch) replace_torch(*env, change, knowledge);
  for (const std::string& requirement : change.requirements) {
    const bool beside_torch = change.kind == Change::Kind::torch;
    put_package(*env, requirement, beside_torch || change.other_files);
  }
  return facts;
}

}  // namespace cufit::checks
