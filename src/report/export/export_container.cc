// SPDX-License-Identifier: Apache-2.0
// Dockerfile, compose.yaml, devcontainer.json, Apptainer definition: the image that holds every
// environment, and how it is started.
#include <algorithm>

#include "base/format.h"
#include "report/export/export_values.h"
#include "report/report.h"
#include "resolve/lock/lock_check.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

constexpr const char* k_lock_folder = "/opt/cufit";

constexpr const char* k_image_lock = "cufit.image.lock";

// The oldest C library that all classes accept; empty = the lock does not tell.
std::string least_glibc(const ExportView& view) {
  std::optional<Version> least;
  for (const ExportClass& one : view.classes)
    if (one.lock.wheel.glibc && (!least || *least < *one.lock.wheel.glibc))
      least = one.lock.wheel.glibc;
  return least ? least->text() : std::string();
}

// "flash-attn 2.8.3": what no wheel of the lock fits in a Debian of these years, each once.
std::vector<std::string> built_in_image(const ExportView& view) {
  const Version glibc{{2, 36}};
  std::vector<std::string> out;
  for (const ExportClass& one : view.classes)
    for (std::string& package : formats::built_from_source(one.pylock, one.lock.python,
                                                           resolve::machine_of(one.lock), glibc)) {
      // A folder of the user, mostly Python alone: it has a note of its own.
      const formats::PylockPackage* found = formats::find_package(one.pylock, package);
      if (found != nullptr && !found->directory.empty()) continue;
      if (std::find(out.begin(), out.end(), package) == out.end())
        out.push_back(std::move(package));
    }
  return out;
}

// "python:3.12-slim@sha256:..." without its tag, and "python:3.12-slim" where it has one:
// registries are asked by digest, and containers/image, on which Apptainer was built for long,
// refuses both.
void set_untagged(const std::string& base, Scope& scope) {
  const std::string name = base.substr(0, base.find('@'));
  const size_t slash = name.rfind('/');
  const size_t colon = name.find(':', slash == std::string::npos ? 0 : slash);
  const bool tagged = colon != std::string::npos && name.size() < base.size();
  scope.values["base_tagged"] = tagged ? name : std::string();
  scope.values["base_untagged"] = tagged ? name.substr(0, colon) + base.substr(name.size()) : base;
}

// One environment for this kind of machine: its Python is the one of every terminal as well.
std::string only_environment(const ExportView& view, bool gpu) {
  std::vector<std::string> fitting;
  for (const ExportClass& one : view.classes)
    if (one.lock.wheel.cuda.has_value() == gpu) fitting.push_back(one.lock.name);
  return fitting.size() == 1 ? format("{}/.cufit/envs/{}", k_lock_folder, fitting.front()) : "";
}

// Which of several environments fits is known on the machine only: the editor lists them all.
Json python_settings(const ExportView& view, bool gpu) {
  const std::string folder = format("{}/.cufit/envs", k_lock_folder);
  const std::string only = only_environment(view, gpu);
  if (only.empty()) return {{"python.venvPath", folder}};
  return {{"python.defaultInterpreterPath", only + "/bin/python"}};
}

Json devcontainer_json(const ExportView& view, bool gpu, const std::string& up) {
  Json out;
  const char* key = gpu ? "export.devcontainer.name_gpu" : "export.devcontainer.name_cpu";
  out["name"] = message(view.knowledge, key, view.lang);
  out["build"] = {{"dockerfile", up + "/Dockerfile"}, {"context", up}};
  Json arguments = Json::array();
  if (gpu) {
    // hostRequirements only chooses among hosted machines; --gpus does the work locally, and
    // without a GPU the container does not start: "optional" would be untrue.
    out["hostRequirements"] = {{"gpu", true}};
    arguments = {"--gpus", view.gpus == 0 ? std::string("all") : std::to_string(view.gpus)};
  }
  for (const char* word : {"--shm-size=8g", "--ulimit", "memlock=-1"}) arguments.push_back(word);
  out["runArgs"] = std::move(arguments);
  out["remoteUser"] = "app";
  if (const std::string only = only_environment(view, gpu); !only.empty())
    out["remoteEnv"] = {{"PATH", only + "/bin:${containerEnv:PATH}"}};
  out["customizations"]["vscode"]["extensions"] = {"ms-python.python"};
  out["customizations"]["vscode"]["settings"] = python_settings(view, gpu);
  out["postStartCommand"] = "cufit preflight || true";
  return out;
}

}  // namespace

std::string image_lock_text(const ExportView& view) {
  if (all_classes(view)) return {};
  resolve::LockFile lock = view.lock;
  lock.classes.clear();
  for (const ExportClass& one : view.classes) lock.classes.push_back(one.lock);
  return resolve::lock_text(lock);
}

std::vector<ExportFile> with_lock(ExportFile file, const ExportView& view) {
  std::vector<ExportFile> out{std::move(file)};
  if (!all_classes(view)) out.push_back({k_image_lock, image_lock_text(view)});
  return out;
}

Result<Scope> image_scope(const ExportView& view) {
  Scope scope = common_scope(view);
  if (Result<void> added = add_folders(view, scope); !added) return added.error();
  if (Result<void> inside = folders_are_inside(scope, view); !inside) return inside.error();
  std::vector<std::string> pylocks;
  for (const ExportClass& one : view.classes) pylocks.push_back(one.lock.file);
  scope.values["base"] = base_image(view);
  set_untagged(scope.values["base"], scope);
  scope.values["gpus_flag"] = has_gpu(view) ? "--gpus all " : "";
  scope.values["lock_file"] = all_classes(view) ? "cufit.lock" : k_image_lock;
  scope.values["glibc"] = least_glibc(view);
  scope.values["built"] = join(built_in_image(view), ", ");
  scope.values["no_built"] = scope.values["built"].empty() ? "yes" : "";
  if (!view.base.empty()) scope.values["built"].clear();  // whoever names a base knows what it has
  scope.values["pylocks"] = join(pylocks, " ");
  // Of several `cufit run` chooses; the one there is alone serves a plain `python` too.
  scope.values["only"] = view.classes.size() == 1 ? view.classes.front().lock.name : "";
  scope.values["kind"] = view.knowledge.message(
      view.classes.size() > 1 ? "export.docker.several" : "export.docker.single", view.lang);
  // The base image's own Python serves one version; others are uv's.
  scope.values["downloads"] = one_python(view) ? "never" : "automatic";
  scope.values["require"] = required_cuda(view);
  scope.values["no_require"] = required_cuda(view).empty() ? "yes" : "";
  return scope;
}

ExportFiles export_dockerfile(const ExportView& view) {
  if (Result<void> same = one_platform(view); !same) return same.error();
  if (!view.with.empty()) return export_universal(view);
  CUFIT_TRY(scope, image_scope(view));
  return with_lock({"Dockerfile", filled("Dockerfile", scope, view)}, view);
}

ExportFiles export_compose(const ExportView& view) {
  if (Result<void> same = one_platform(view); !same) return same.error();
  Scope scope = common_scope(view);
  scope.values["count"] = view.gpus == 0 ? "all" : std::to_string(view.gpus);
  return std::vector<ExportFile>{{"compose.yaml", filled("compose.yaml", scope, view)}};
}

ExportFiles export_devcontainer(const ExportView& view) {
  if (Result<void> same = one_platform(view); !same) return same.error();
  std::vector<ExportFile> out;
  if (has_gpu(view))
    out.push_back(
        {".devcontainer/devcontainer.json", devcontainer_json(view, true, "..").dump(2) + "\n"});
  if (has_cpu(view)) {
    const bool alone = out.empty();
    out.push_back(
        {alone ? ".devcontainer/devcontainer.json" : ".devcontainer/cpu/devcontainer.json",
         devcontainer_json(view, false, alone ? ".." : "../..").dump(2) + "\n"});
  }
  return out;
}

ExportFiles export_apptainer(const ExportView& view) {
  if (Result<void> same = one_platform(view); !same) return same.error();
  CUFIT_TRY(scope, image_scope(view));
  return with_lock({"image.def", filled("image.def", scope, view)}, view);
}

}  // namespace cufit::report
