// SPDX-License-Identifier: Apache-2.0
// Does the Python of a virtual environment still exist, and is it the one that the environment was
// made for? And does something that lies in the way hide the torch that is installed: another one on
// PYTHONPATH, a torch.py in the current folder?
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/install/torch_command.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

// "/usr/bin/python3.11" -> "3.11"; empty where the name does not tell.
std::string minor_in_name(const std::string& program) {
  const std::string_view name = file_name(program);
  if (!starts_with(name, "python3.")) return {};
  const std::optional<Version> version = parse_version(name.substr(6));
  return version ? format("{}.{}", version->part(0), version->part(1)) : std::string();
}

std::string minor_of_packages(const facts::PythonEnv& env) {
  const std::optional<Version> version = env.python ? parse_version(*env.python) : std::nullopt;
  return version ? format("{}.{}", version->part(0), version->part(1)) : std::string();
}

void judge_base(const Input& input, const facts::PythonEnv& env, std::vector<Finding>& findings) {
  const std::string packages = minor_of_packages(env);
  const std::string now = env.base_python ? minor_in_name(*env.base_python) : "";
  // The link leads nowhere, or there is not even a link.
  const bool gone = absent(env.base_python) || (env.kind == "venv" && absent(env.interpreter) &&
                                                input.facts.origin != "image");
  const bool other = !now.empty() && !packages.empty() && now != packages;
  if (!gone && !other) return;
  Finding made = finding("python_gone", Severity::error, subject_of(env));
  if (other) made.variant = "other_version";
  made.args["env"] = env.path;
  made.args["python"] = packages.empty() ? "3" : packages;
  made.args["now"] = now;
  const bool no_link = gone && !absent(env.base_python);
  if (no_link) made.variant = "no_link";
  made.args["file"] = (no_link ? env.interpreter : env.base_python).source.detail;
  made.args["target"] = gone ? env.base_python.note : *env.base_python;
  const TorchBuild build = torch_build_of(input, env);
  made.args["command"] = install_beside(input, env, build.release, build.tag);
  made.evidence.push_back({"file", made.args["file"], "-> " + made.args["target"]});
  if (other && env.python) made.evidence.push_back(seen(env.python));
  findings.push_back(std::move(made));
}

std::string site_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string without_slash(std::string_view folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.remove_suffix(1);
  return std::string(folder);
}

// The installed torch that the one on PYTHONPATH hides; null = there is none, or nothing is hidden.
const facts::Distribution* hidden_torch(const facts::PythonEnv& env, const std::string& folder) {
  for (const facts::Distribution* torch : find_distributions(env, "torch"))
    if (torch->kind != "leftover" && site_of(torch->location) != folder) return torch;
  return nullptr;
}

void judge_python_path(const Input& input, const facts::PythonEnv& env,
                       std::vector<Finding>& findings) {
  const std::string folder = folder_on_python_path(input.facts, env);
  if (folder.empty()) return;
  const facts::Distribution* hidden = hidden_torch(env, folder);
  if (hidden == nullptr) return;
  const std::string taken = torch_build_of(input, env).release;
  Finding made = finding("pythonpath_hides_torch", Severity::warning, subject_of(env));
  made.args["version"] = env.torch.version.value_or(taken);
  made.args["folder"] = folder;
  made.args["hidden"] = hidden->version;
  made.args["env"] = env.path;
  made.args["command"] = "unset PYTHONPATH";
  made.evidence.push_back({"env", "PYTHONPATH", variable(input.facts, "PYTHONPATH")});
  made.evidence.push_back(seen(env.torch.version));
  made.evidence.push_back({"file", hidden->location, hidden->version});
  // What was installed for the hidden one meets the other.
  for (const TorchPin& pin : torch_pins(env)) {
    const facts::Distribution* package = find_distribution(env, pin.package);
    if (package == nullptr || package->version != pin.version || taken.empty() ||
        pin.takes(taken) || site_of(package->location) == folder)
      continue;
    made.severity = Severity::error;
    made.evidence.push_back({"file", package->location + "/METADATA", pin.requirement});
  }
  findings.push_back(std::move(made));
}

}  // namespace

std::string folder_on_python_path(const facts::Facts& facts, const facts::PythonEnv& env) {
  if (env.torch.path.empty()) return {};
  const std::string folder = site_of(env.torch.path);
  const std::string path = variable(facts, "PYTHONPATH");
  for (std::string_view one : split(path, ':'))
    if (without_slash(one) == folder) return folder;
  return {};
}

std::vector<Finding> check_python_base(const Input& input) {
  std::vector<Finding> findings;
  const facts::PythonEnv* main = main_env(input.facts);
  if (main != nullptr && !has_torch(*main)) judge_base(input, *main, findings);
  std::vector<Finding> hidden;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    judge_base(input, *env, findings);
    judge_python_path(input, *env, hidden);
  }
  // The variable is one for every Python: one finding, that of the environment in use.
  if (!hidden.empty() && torch_envs(input.facts).size() > 1) {
    const auto of_main = std::find_if(hidden.begin(), hidden.end(), [&](const Finding& one) {
      return main != nullptr && one.subject == subject_of(*main);
    });
    if (of_main != hidden.end()) std::iter_swap(hidden.begin(), of_main);
    hidden.resize(1);
    hidden.front().subject = k_machine;
  }
  for (Finding& one : hidden) findings.push_back(std::move(one));
  return findings;
}

std::vector<Finding> check_local_modules(const Input& input) {
  std::vector<Finding> findings;
  if (torch_envs(input.facts).empty()) return findings;
  for (const std::string& file : input.facts.local_modules) {
    Finding made = finding("local_module_hides", Severity::warning, k_machine);
    const bool folder = ends_with(file, "/");
    const std::string module = file.substr(0, file.size() - (folder ? 1 : 3));
    if (folder) made.variant = "folder";
    made.args = {{"file", file}, {"module", module}};
    made.args["command"] = folder ? "cd .." : "mv " + file + " my_" + file;
    made.evidence.push_back({"file", "./" + file, module});
    findings.push_back(std::move(made));
  }
  return findings;
}

}  // namespace cufit::checks
