// SPDX-License-Identifier: Apache-2.0
#include "checks/install/project.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "base/version.h"
#include "checks/fact_view.h"
#include "checks/install/conda_torch.h"

namespace cufit::checks {
namespace {

// One clause of requires-python that is a lower bound: ">=3.9", "~=3.9", "^3.9", "==3.9.*".
struct Floor {
  std::string clause, op;
  Version version;
};

std::optional<Floor> floor_of(const std::string& python) {
  std::optional<Floor> best;
  if (contains(python, "|")) return best;  // of poetry: one range or another
  for (const std::string_view part : split(python, ',')) {
    const std::string_view clause = trim(part);
    const size_t end = std::min(clause.find_first_of("0123456789"), clause.size());
    const std::string op(trim(clause.substr(0, end)));
    if (op != ">=" && op != "~=" && op != "^" && op != "~" && op != "==" && op != ">") continue;
    std::string_view number = clause.substr(end);
    if (ends_with(number, ".*")) number.remove_suffix(2);
    const std::optional<Version> version = parse_version(number);
    if (version && (!best || *version > best->version))
      best = Floor{std::string(clause), op, *version};
  }
  return best;
}

std::string minor_of(const Version& version) {
  return format("{}.{}", version.part(0), version.part(1));
}

std::optional<Version> oldest_python(const knowledge::TorchRelease& release) {
  std::optional<Version> oldest;
  for (const std::string_view one : split(release.python, ' ')) {
    const std::optional<Version> version = parse_version(one);
    if (version && (!oldest || *version < *oldest)) oldest = version;
  }
  return oldest;
}

std::string words_of(const InstallRequest& request) {
  std::string out;
  for (const std::string& one : request.requirements) out += " " + shell_word(one);
  return out;
}

std::string_view name_of(std::string_view requirement) {
  return requirement.substr(0, requirement.find_first_of("=<>!~[ "));
}

// "pixi add" with both kinds of words; `option` names the index.
std::string both(const std::string& command, const InstallRequest& request,
                 const std::string& option) {
  const ByIndex words = by_index(request);
  std::string out;
  if (!words.on_index.empty()) out = command + words.on_index + option;
  if (!words.beside.empty()) out += (out.empty() ? "" : " && ") + command + words.beside;
  return out;
}

std::string_view without_slash(std::string_view url) {
  while (ends_with(url, "/")) url.remove_suffix(1);
  return url;
}

const facts::ProjectIndex* find_index(const facts::PythonEnv& env, std::string_view url) {
  for (const facts::ProjectIndex& one : env.project_indexes)
    if (!one.name.empty() && without_slash(one.url) == without_slash(url)) return &one;
  return nullptr;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace

bool suits_project(const facts::PythonEnv& env, const knowledge::TorchRelease& release) {
  const std::optional<Floor> floor = floor_of(env.project_python);
  const std::optional<Version> oldest = oldest_python(release);
  return !floor || !oldest || minor_of(floor->version) == minor_of(*oldest) ||
         floor->version >= *oldest;
}

std::string raised_python(const Input& input, const facts::PythonEnv& env, const Owner& owner,
                          const InstallRequest& request) {
  const knowledge::TorchRelease* found = nullptr;
  for (const std::string& one : request.requirements)
    if (starts_with(one, "torch=="))
      found = input.knowledge.find_torch(public_version(one.substr(7)));
  if (found == nullptr || request.kind != InstallKind::change) return {};
  const knowledge::TorchRelease& release = *found;
  const std::optional<Floor> floor = floor_of(env.project_python);
  if (suits_project(env, release) || !floor) return {};
  std::string range = env.project_python;
  const std::string op = floor->op == ">=" || floor->op == "~=" ? floor->op : ">=";
  range.replace(range.find(floor->clause), floor->clause.size(),
                op + minor_of(*oldest_python(release)));
  if (range.find_first_not_of("0123456789.,<>=!~* ") != range.npos) return {};
  return "sed -i 's/^requires-python *=.*/requires-python = \"" + range + "\"/' " +
         shell_word(owner.folder + "/pyproject.toml") + " && ";
}

bool is_on_torch_index(std::string_view requirement) {
  const std::string_view name = name_of(requirement);
  constexpr std::string_view k_there[] = {"torch", "torchvision", "torchaudio", "triton",
                                          "xformers"};
  return contains(requirement, "+") ||
         std::find(std::begin(k_there), std::end(k_there), name) != std::end(k_there);
}

ByIndex by_index(const InstallRequest& request) {
  ByIndex out;
  for (const std::string& one : request.requirements) {
    const bool there =
        !request.index.empty() && (!request.beside_default || is_on_torch_index(one));
    (there ? out.on_index : out.beside) += " " + shell_word(one);
  }
  return out;
}

bool is_bound_to_index(const facts::PythonEnv& env) {
  return std::any_of(env.project_indexes.begin(), env.project_indexes.end(),
                     [](const facts::ProjectIndex& one) { return !one.packages.empty(); });
}

// uv writes the name first, and leaves `explicit` where it is already.
std::string make_explicit(std::string_view index_name, std::string_view pyproject) {
  return "sed -i '/^name *= *\"" + std::string(index_name) +
         "\"/,/^\\[/{/^explicit/d;s/^name.*/&\\nexplicit = true/}' " + shell_word(pyproject);
}

std::string in_uv_project(const facts::PythonEnv& env, const Owner& owner,
                          const InstallRequest& request) {
  const std::string project = " --project " + shell_word(owner.folder);
  if (request.kind == InstallKind::repair) {
    std::string out = "uv sync" + project;
    for (const std::string& one : request.requirements)
      out += " --reinstall-package " + shell_word(name_of(one));
    return out;
  }
  std::string updated;
  if (request.kind == InstallKind::update)
    for (const std::string& one : request.requirements)
      updated += " --upgrade-package " + shell_word(one);
  if (request.index.empty()) return "uv add" + project + updated + words_of(request);
  // What is added from an index on the command line comes from there, and so does all else that it
  // has: only the file can say that it is for torch. `--frozen` writes the file and resolves nothing.
  const facts::ProjectIndex* there = find_index(env, request.index);
  const bool known = there != nullptr && is_plain_name(there->name);
  const std::string name = known ? there->name : request.index_name;
  std::string out = both("uv add --frozen" + project, request,
                         " --index " + shell_word(name + "=" + request.index)) +
                    " && ";
  if (!known || !there->is_explicit)
    out += make_explicit(name, owner.folder + "/pyproject.toml") + " && ";
  return out + "uv sync --inexact" + project + updated;
}

std::string by_pdm(const Owner& owner, const InstallRequest& request) {
  const std::string project = " -p " + shell_word(owner.folder);
  if (request.kind == InstallKind::update) return "pdm update" + project + words_of(request);
  // pdm asks all indexes and takes the newest; +cu126 is on this one alone.
  const std::string source = request.index.empty()
                                 ? ""
                                 : "pdm config" + project + " --local " +
                                       shell_word("pypi." + request.index_name + ".url") + " " +
                                       shell_word(request.index) + " && ";
  return source + "pdm add" + project + words_of(request);
}

std::string by_pipenv(const Owner& owner, const InstallRequest& request) {
  const std::string pipenv = "PIPENV_PIPFILE=" + shell_word(owner.folder + "/Pipfile") + " pipenv ";
  if (request.kind == InstallKind::update) return pipenv + "update" + words_of(request);
  return both(pipenv + "install", request, " --index " + shell_word(request.index));
}

std::string pixi_place(const facts::PythonEnv& env, const Owner& owner) {
  if (owner.folder.empty()) return {};
  const std::string name = env.path.substr(env.path.rfind('/') + 1);
  return " --manifest-path " + shell_word(owner.folder) +
         (name == "default" ? "" : " --feature " + shell_word(name));
}

std::string by_pixi(const facts::PythonEnv& env, const Owner& owner, const InstallRequest& request,
                    const std::string& python) {
  const std::string place = pixi_place(env, owner);
  std::vector<std::string> old = env.project_packages;
  if (owner.folder.empty()) old = conda_torch_packages(env);
  std::string out;
  if (!old.empty()) {
    out = "pixi remove" + place;
    for (const std::string& one : old) out += " " + shell_word(one);
    out += " && ";
  }
  if (!python.empty()) out += "pixi add" + place + " python=" + python + " && ";
  return out +
         both("pixi add" + place + " --pypi", request, " --index " + shell_word(request.index));
}

}  // namespace cufit::checks
