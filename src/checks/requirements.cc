// SPDX-License-Identifier: Apache-2.0
// `pip check` for torch's world: what installed packages ask of each other by their own METADATA,
// where torch asks, or is asked for, or a package that it meets (NVIDIA's libraries, triton, numpy).
// Partners with an exact pin are torch_family.cc's, torch's pins of nvidia-* nvidia_packages.cc's.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/asked_requirement.h"
#include "checks/install/after_step.h"
#include "checks/install/restore_torch.h"
#include "checks/install/torch_command.h"
#include "checks/install/torch_step.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

bool is_of_cuda(std::string_view name) {
  return starts_with(name, "nvidia-") || name == "cuda-toolkit" || name == "cuda-bindings";
}

bool is_of_torchs_world(std::string_view name) {
  return name == "torch" || name == "torchvision" || name == "torchaudio" || name == "triton" ||
         name == "pytorch-triton" || name == "numpy" || is_of_cuda(name);
}

// conda and distributions resolve by their own records, and under other names.
bool speaks_for_itself(const facts::Distribution& asker) {
  return asker.kind == "dist-info" && asker.installer != "conda" && asker.installer != "pixi";
}

std::vector<Asked> needs_of(const facts::PythonEnv& env) {
  std::vector<Asked> out;
  for (const facts::Distribution& asker : *env.distributions) {
    if (!speaks_for_itself(asker) || find_distribution(env, asker.name) != &asker) continue;
    for (const std::string& line : asker.needs) {
      auto requirement = formats::parse_requirement(line);
      if (!requirement || !requirement->url.empty()) continue;
      if (asker.name != "torch" && !is_of_torchs_world(requirement->name)) continue;
      const facts::Distribution* installed = find_distribution(env, requirement->name);
      // Its files are there without a record: torch_install.cc's matter.
      if (installed == nullptr && requirement->name == "torch" && !env.torch.path.empty()) continue;
      out.push_back({&asker, installed, std::move(*requirement)});
    }
  }
  return out;
}

// What a pip package asks for is looked for under pip's name, in conda's environments as well.
std::string install_specs(const Input& input, const facts::PythonEnv& env,
                          const std::vector<std::string>& specs) {
  const Owner owner = owner_of(env, false);
  // Its lock has what is missing.
  if (owner.installer == Installer::uv_project)
    return "uv sync --project " + shell_word(owner.folder);
  if (owner.installer == Installer::poetry && !owner.folder.empty())
    return "poetry --directory " + shell_word(owner.folder) + " install";
  if (owner.installer == Installer::pdm) return "pdm sync -p " + shell_word(owner.folder);
  if (owner.installer == Installer::pipenv)
    return "PIPENV_PIPFILE=" + shell_word(owner.folder + "/Pipfile") + " pipenv sync";
  if (owner.installer != Installer::conda && owner.installer != Installer::pixi)
    return install_packages(input, env, specs);
  std::string command = pip_install_of(env);
  for (const std::string& spec : specs) command += " " + shell_word(spec);
  return command;
}

// `import torch` itself stops without it: typing_extensions in torch 2.4, 2.11 and 2.15 (each of
// torch's requirements was hidden in turn), and a library that is then found nowhere.
bool stops_import(const facts::PythonEnv& env, const Asked& need) {
  if (need.asker->name == "torch" && need.requirement.name == "typing-extensions") return true;
  return std::any_of(env.loads.begin(), env.loads.end(), [&](const facts::LoadedLibrary& library) {
    return library.path.empty() && library.by != "dlopen" &&
           brings_library(need.requirement.name, library.name);
  });
}

void missing_ones(const Input& input, const facts::PythonEnv& env, const std::vector<Asked>& needs,
                  std::vector<Finding>& findings) {
  Finding made = finding("requirement_missing", Severity::warning, subject_of(env));
  std::vector<std::string> names, specs, askers;
  bool harms = false, only_numpy = true;
  for (const Asked& need : needs) {
    if (need.installed != nullptr) continue;
    // These two bring no library of CUDA: alone they are not missed.
    harms = harms ||
            (need.requirement.name != "cuda-toolkit" && need.requirement.name != "cuda-bindings");
    only_numpy = only_numpy && need.requirement.name == "numpy";
    if (stops_import(env, need)) made.severity = Severity::error;
    const std::string asker = need.asker->name + " " + need.asker->version;
    if (std::find(askers.begin(), askers.end(), asker) == askers.end()) askers.push_back(asker);
    made.evidence.push_back(
        {"file", need.asker->location + "/METADATA", spec_of(need.requirement)});
    // The most exact of several is installed; nvidia-cudnn asks for "nvidia-cublas" alone.
    auto same = std::find(names.begin(), names.end(), need.requirement.name);
    if (same == names.end()) {
      names.push_back(need.requirement.name);
      specs.push_back(spec_of(need.requirement));
    } else if (std::string& spec = specs[static_cast<size_t>(same - names.begin())];
               spec_of(need.requirement).size() > spec.size()) {
      spec = spec_of(need.requirement);
    }
  }
  if (!harms) return;
  if (only_numpy) made.severity = Severity::note;
  if (made.severity == Severity::error) made.variant = "import";
  made.args["packages"] = short_list(names);
  made.args["askers"] = short_list(askers, 3);
  made.args["env"] = env.path;
  made.args["command"] = install_specs(input, env, specs);
  made.change = packages_change(env, specs);
  findings.push_back(std::move(made));
}

std::string minor_text(std::string_view version) {
  const std::optional<Version> parsed = parse_version(version);
  return parsed ? format("{}.{}", parsed->part(0), parsed->part(1)) : std::string();
}

// Said by other checks, which know more of it.
bool is_partners_matter(const Asked& need) {
  const std::string& asker = need.asker->name;
  const std::string& wanted = need.requirement.name;
  if (wanted == "torch") return asker == "torchvision" || asker == "torchaudio";
  const bool exact = std::any_of(need.requirement.clauses.begin(), need.requirement.clauses.end(),
                                 [](const formats::VersionClause& one) {
                                   return one.op == "==" && !ends_with(one.version, ".*");
                                 });
  return asker == "torch" && exact && (is_of_cuda(wanted) || wanted == "triton");
}

struct Unmet {
  std::string wanted;
  std::vector<const Asked*> needs;
};

Severity severity_of(const Unmet& unmet) {
  if (unmet.wanted != "torch") return is_of_cuda(unmet.wanted) ? Severity::warning : Severity::note;
  for (const Asked* need : unmet.needs) {
    const std::string have = minor_text(need->installed->version);
    const auto& clauses = need->requirement.clauses;
    // Another patch release has the same interfaces in practice.
    const bool patch =
        std::any_of(clauses.begin(), clauses.end(), [&](const formats::VersionClause& one) {
          return one.op == "==" && minor_text(one.version) == have;
        });
    if (!patch) return Severity::warning;
  }
  return Severity::note;
}

void add_command(const Input& input, const facts::PythonEnv& env, const Unmet& unmet,
                 Finding& made) {
  const Asked& first = *unmet.needs.front();
  if (unmet.wanted != "torch") {
    made.args["command"] = install_specs(input, env, {spec_of(first.requirement)});
    made.change = packages_change(env, {spec_of(first.requirement)});
    return;
  }
  const TorchStep step = torch_step(input, env);
  const auto restore = restore_torch(input, env);
  // No torch suits all that is installed: a program may bring the others along.
  if (restore && (!step.pick || !step.pinner.empty())) {
    made.args["command"] = restore->command;
    made.change = restore->change;
    return;
  }
  if (step.pick && step.pinner.empty()) {
    made.args["command"] = step.command;
    made.change = change_of(env, step);
    return;
  }
  made.variant = "no_torch";
  made.args["command"] = install_packages(input, env, {first.asker->name}, InstallKind::update);
}

void other_versions(const Input& input, const facts::PythonEnv& env,
                    const std::vector<Asked>& needs, std::vector<Finding>& findings) {
  const TorchBuild build = torch_build_of(input, env);
  std::map<std::string, Unmet> by_name;
  for (const Asked& need : needs) {
    if (need.installed == nullptr || is_partners_matter(need)) continue;
    // What Python imports counts: a torch on PYTHONPATH may have no record of its own.
    const bool torch = need.requirement.name == "torch" && !build.release.empty();
    const std::string have = torch ? build.release : need.installed->version;
    if (formats::satisfies(need.requirement.clauses, have)) continue;
    if (!torch && contradicted_by(need, needs) != nullptr) continue;  // contradictions()
    Unmet& unmet = by_name[need.requirement.name];
    unmet.wanted = need.requirement.name;
    unmet.needs.push_back(&need);
  }
  for (const auto& [wanted, unmet] : by_name) {
    Finding made = finding("requirement_unmet", severity_of(unmet), subject_of(env));
    std::vector<std::string> askers;
    for (const Asked* need : unmet.needs) {
      askers.push_back(format("{} {} ({})", need->asker->name, need->asker->version,
                              spec_of(need->requirement)));
      made.evidence.push_back(
          {"file", need->asker->location + "/METADATA", spec_of(need->requirement)});
    }
    const facts::Distribution& installed = *unmet.needs.front()->installed;
    made.evidence.push_back({"file", installed.location, installed.version});
    made.args["package"] = wanted;
    made.args["have"] =
        wanted == "torch" && !build.release.empty() ? build.release : installed.version;
    made.args["askers"] = short_list(askers, 4);
    made.args["asker"] = unmet.needs.front()->asker->name;
    made.args["env"] = env.path;
    add_command(input, env, unmet, made);
    findings.push_back(std::move(made));
  }
}

}  // namespace

std::vector<Finding> check_requirements(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    // A folder of packages may be one of several on a path.
    if (!env->distributions || env->kind == "folder") continue;
    const std::vector<Asked> needs = needs_of(*env);
    missing_ones(input, *env, needs, findings);
    other_versions(input, *env, needs, findings);
    for (Finding& one : contradictions(*env, needs)) findings.push_back(std::move(one));
  }
  return findings;
}

}  // namespace cufit::checks
