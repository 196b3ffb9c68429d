// SPDX-License-Identifier: Apache-2.0
// Which CUDA libraries would a torch process load, and are they torch's own? The answer comes from
// host/'s simulation of glibc's search (PythonEnv::loads); nothing is guessed from a version table
// here.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/install/after_step.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"

namespace cufit::checks {
namespace {

// Libraries of the CUDA toolkit and its companions. Not the driver's own (libcuda, libnvidia-*):
// those must come from outside the environment and have checks of their own.
bool is_cuda_library(std::string_view name) {
  if (starts_with(name, "libcuda.") || starts_with(name, "libnvidia-")) return false;
  for (std::string_view prefix :
       {"libcud", "libcub", "libcufft", "libcufile", "libcurand", "libcusolver", "libcusparse",
        "libcupti", "libnccl", "libnvJitLink", "libnvrtc", "libnvToolsExt", "libnvshmem",
        "libnvtx"}) {
    if (starts_with(name, prefix)) return true;
  }
  return false;
}

// A sub-library that cuDNN opens by name when an operation first needs it: importing torch succeeds
// without it.
bool is_opened_later(const facts::LoadedLibrary& library) {
  return library.path.empty() && library.by == "dlopen";
}

// The environment holds a copy of its own, so the foreign one took its place.
const facts::LoadedLibrary* own_copy(const facts::PythonEnv& env, const std::string& name) {
  for (const facts::LoadedLibrary& other : env.shadowed) {
    if (other.name == name && other.inside && !other.path.empty()) return &other;
  }
  return nullptr;
}

// cuDNN's parts must be of one release. A part that the environment lacks is then taken from the
// system by name, beside the environment's own libcudnn.so (seen on an H200: LSTM fails with
// CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, convolutions run).
const facts::LoadedLibrary* own_cudnn(const facts::PythonEnv& env, const std::string& name) {
  if (!starts_with(name, "libcudnn_")) return nullptr;
  for (const facts::LoadedLibrary& other : env.loads) {
    if (starts_with(other.name, "libcudnn.so") && other.inside) return &other;
  }
  return nullptr;
}

// What the foreign library stands beside or instead of.
const facts::LoadedLibrary* own_partner(const facts::PythonEnv& env, const std::string& name) {
  const facts::LoadedLibrary* own = own_copy(env, name);
  return own != nullptr ? own : own_cudnn(env, name);
}

std::string stem(std::string_view name) { return std::string(name.substr(0, name.find(".so"))); }

// The installed package that should hold the file; null = none of them.
const facts::Distribution* package_with(const facts::PythonEnv& env, const std::string& library) {
  if (!env.distributions) return nullptr;
  for (const facts::Distribution& one : *env.distributions)
    if (brings_library(one.name, library)) return &one;
  return nullptr;
}

// Reinstalling torch's own pins brings the file back; where one package should hold it, that one is
// enough.
void add_step(const Input& input, const facts::PythonEnv& env, const TorchBuild& build,
              const std::string& library, Finding& made) {
  const facts::Distribution* owner = package_with(env, library);
  if (owner == nullptr) {
    made.args["package"] = "torch";
    made.args["command"] = install_command(input, env, build.release, build.tag);
    return;
  }
  made.args["package"] = owner->name + " " + owner->version;
  const facts::Distribution* torch = find_distribution(env, "torch");
  const std::string pin = torch != nullptr ? exact_pin(*torch, owner->name) : "";
  const bool other = !pin.empty() && pin != owner->version;
  // Another release than torch's own pin would break torch's requirement for it.
  const std::vector<std::string> wanted{owner->name + "==" + (other ? pin : owner->version)};
  made.args["command"] =
      install_packages(input, env, wanted, other ? InstallKind::change : InstallKind::repair);
  made.change = packages_change(env, wanted);
}

void not_found(const Input& input, const facts::PythonEnv& env, const TorchBuild& build,
               std::vector<Finding>& findings) {
  std::vector<std::string> names, asked;
  Finding made = finding("cuda_lib_not_found", Severity::error, subject_of(env));
  bool import_fails = false;
  for (const facts::LoadedLibrary& library : env.loads) {
    if (!library.path.empty() || !is_cuda_library(library.name)) continue;
    names.push_back(library.name);
    asked.emplace_back(file_name(library.asked_by));
    import_fails = import_fails || !is_opened_later(library);
    made.evidence.push_back(
        {"file", library.asked_by,
         library.name + ": " + (library.by.empty() ? "not found" : library.by)});
  }
  if (names.empty()) return;
  if (!import_fails) {
    // Without its engines_runtime_compiled, cuDNN 9.19 ran LSTM and failed at convolutions; matrix
    // products never need it (measured on an H200).
    made.variant = "sublibrary";
    made.severity = Severity::warning;
  }
  made.args["names"] = short_list(names);
  made.args["name"] = names.front();
  made.args["asked_by"] = asked.front();
  made.args["env"] = env.path;
  add_step(input, env, build, names.front(), made);
  findings.push_back(std::move(made));
}

std::string rule_variant(const std::string& by) {
  if (by == "LD_LIBRARY_PATH") return "ld_library_path";
  return by == "ld.so.cache" || by == "default directory" ? "cache" : "";
}

// "libcublasLt.so.12 <- libcublas.so.12 (LD_LIBRARY_PATH):
// /usr/local/cuda-12.1/lib64/libcublasLt.so.12"
std::string line_of(const facts::LoadedLibrary& library) {
  return format("{} <- {} ({}): {}", library.name, file_name(library.asked_by), library.by,
                library.path);
}

void shadowed(const facts::PythonEnv& env, const TorchBuild& build,
              std::vector<Finding>& findings) {
  std::vector<const facts::LoadedLibrary*> foreign;
  for (const facts::LoadedLibrary& library : env.loads) {
    if (library.path.empty() || !is_cuda_library(library.name)) continue;
    const bool major = build.cuda && !library.cuda_major.empty() &&
                       library.cuda_major != std::to_string(build.cuda->part(0));
    // Inside, but a package of another CUDA major put its files there: nvidia_packages.cc names the
    // packages.
    if (library.inside) continue;
    const facts::LoadedLibrary* own = own_partner(env, library.name);
    if (own == nullptr && !major) continue;  // a system or image build without libraries of its own
    foreign.push_back(&library);
  }
  if (foreign.empty()) return;
  // Never more than a warning: what a mixed stack does is not in the files. On an H200, torch 2.11
  // with cuDNN 9.19 and the parts of 9.14 ran a convolution, and torch.backends.cudnn.version()
  // refused the pair (tests/machines/h200-recorded-other-cudnn); other pairs fail at import.
  Finding made = finding("cuda_libs_shadowed", Severity::warning, subject_of(env));
  made.variant = rule_variant(foreign.front()->by);
  std::vector<std::string> names;
  for (const facts::LoadedLibrary* library : foreign) {
    names.push_back(stem(library->name));
    made.evidence.push_back({"file", library->path, line_of(*library)});
    const facts::LoadedLibrary* own = own_partner(env, library->name);
    if (own != nullptr) made.evidence.push_back({"file", own->path, own->version});
  }
  const std::string& path = foreign.front()->path;
  made.args["names"] = short_list(names);
  made.args["folder"] = path.substr(0, path.rfind('/'));
  made.args["by"] = foreign.front()->by;
  made.args["asked_by"] = std::string(file_name(foreign.front()->asked_by));
  made.args["have"] = foreign.front()->version.empty() ? "?" : foreign.front()->version;
  const facts::LoadedLibrary* own = own_partner(env, foreign.front()->name);
  made.args["own"] = own != nullptr && !own->version.empty() ? own->version : build.tag;
  made.args["env"] = env.path;
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_cuda_libraries(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    const TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    not_found(input, *env, build, findings);
    shadowed(*env, build, findings);
  }
  return findings;
}

}  // namespace cufit::checks
