// SPDX-License-Identifier: Apache-2.0
// Is the torch of an environment one whole installation? Two records in one directory, a pip wheel
// over a conda package, leftovers of an interrupted pip ("~orch"), files that RECORD names and that
// are gone. Also: is the active environment the one that has torch at all?
#include <algorithm>

#include "base/shell_word.h"
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/install/after_step.h"
#include "checks/install/torch_command.h"
#include "checks/install/torch_step.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

bool is_conda_record(const facts::Distribution& distribution) {
  return distribution.kind == "conda-meta";
}
bool from_conda(const facts::Distribution& distribution) {
  return is_conda_record(distribution) || distribution.installer == "conda";
}
bool is_leftover(const facts::Distribution& distribution) {
  return starts_with(file_name(distribution.location), "~");
}
std::string folder_of(const std::string& location) {
  return location.substr(0, location.rfind('/'));
}

// "~orch-2.3.1.dist-info" and the package "torch": pip replaces the first letter while it removes.
bool leftover_of(const facts::Distribution& distribution, std::string_view package) {
  const std::string name = lower(file_name(distribution.location));
  return is_leftover(distribution) &&
         starts_with(std::string_view(name).substr(1), package.substr(1));
}

Finding broken(const Input& input, const facts::PythonEnv& env, const char* variant,
               const facts::Distribution& first) {
  Finding made = finding("torch_install_broken", Severity::error, subject_of(env));
  made.variant = variant;
  made.args["env"] = env.path;
  made.args["version"] = first.version;
  made.args["location"] = first.location;
  made.change = torch_change(env, std::string(public_version(first.version)), env.torch.variant);
  made.args["command"] =
      repair_command(input, env, std::string(public_version(first.version)), env.torch.variant);
  return made;
}

// Order of two records in one directory: the one whose files are there comes first.
struct WrittenLast {
  const facts::PythonEnv& env;

  bool operator()(const facts::Distribution* a, const facts::Distribution* b) const {
    const bool is_a = is_there(*a), is_b = is_there(*b);
    if (is_a != is_b) return is_a;
    const auto older = parse_version(b->version), newer = parse_version(a->version);
    return older && newer && *older < *newer;
  }
  bool is_there(const facts::Distribution& one) const {
    return env.torch.version && public_version(*env.torch.version) == public_version(one.version);
  }
};

// pip removes one record at a time, and reinstalling one leaves the other: seen with pip 23.2 in
// one of five pairs of releases.
void remove_first(size_t records, std::string& command) {
  const size_t end = command.find(" -m pip install ");
  if (end == std::string::npos) return;
  const std::string one = command.substr(0, end) + " -m pip uninstall -y torch && ";
  for (size_t i = 0; i < records; ++i) command = one + command;
}

void two_records(const Input& input, const facts::PythonEnv& env, std::vector<Finding>& findings) {
  std::vector<const facts::Distribution*> wheels, conda;
  for (const facts::Distribution* torch : find_distributions(env, "torch")) {
    if (is_leftover(*torch)) continue;
    (from_conda(*torch) ? conda : wheels).push_back(torch);
  }
  for (const char* name : {"pytorch", "libtorch"}) {
    for (const facts::Distribution* torch : find_distributions(env, name)) conda.push_back(torch);
  }
  if (!wheels.empty() && !conda.empty()) {
    Finding made = broken(input, env, "conda_and_pip", *wheels.front());
    // pip leaves conda's record, and with it the mixture, in place.
    made.args["command"] = "conda remove -y --force -p " + shell_word(env.path) + " " +
                           shell_word(conda.front()->name) + " && " + made.args["command"];
    made.args["other"] = conda.front()->name + " " + conda.front()->version;
    made.evidence.push_back({"file", wheels.front()->location, wheels.front()->version});
    made.evidence.push_back({"file", conda.front()->location, conda.front()->version});
    findings.push_back(std::move(made));
    return;
  }
  if (wheels.size() < 2) return;
  // One that PYTHONPATH puts before the environment's own is python_base.cc's.
  if (!folder_on_python_path(input.facts, env).empty()) return;
  std::stable_sort(wheels.begin(), wheels.end(),
                   [&](const facts::Distribution* a, const facts::Distribution* b) {
                     return place_on_path(env, *a) < place_on_path(env, *b);
                   });
  // In one directory the files of both are mixed; in two directories the first of sys.path hides
  // the other.
  const bool same = folder_of(wheels[0]->location) == folder_of(wheels[1]->location);
  // The files are those of the one that was written last: version.py tells which, else the newest.
  if (same) std::stable_sort(wheels.begin(), wheels.end(), WrittenLast{env});
  Finding made = broken(input, env, same ? "two_records" : "two_directories", *wheels[0]);
  if (same) remove_first(wheels.size(), made.args["command"]);
  if (!same) made.severity = Severity::warning;
  made.args["other"] = wheels[1]->version;
  made.args["other_location"] = wheels[1]->location;
  for (const facts::Distribution* torch : wheels)
    made.evidence.push_back({"file", torch->location, torch->version});
  findings.push_back(std::move(made));
}

// A shared object, or a module that `import torch` most likely reads: of torch 2.4, 2.11 and 2.15 it
// reads nine of ten modules of the first level and of the folders named here.
bool is_imported_first(const std::string& path) {
  if (!ends_with(path, ".py")) return true;
  for (std::string_view folder :
       {"torch/autograd", "torch/cuda", "torch/distributions", "torch/fx", "torch/nn",
        "torch/nn/modules", "torch/nn/parallel", "torch/optim", "torch/utils/data"})
    if (folder == path.substr(0, path.rfind('/'))) return true;
  const long module = ends_with(path, "/__init__.py") ? 1 : 0;
  return std::count(path.begin(), path.end(), '/') - module <= 1;
}

void damaged(const Input& input, const facts::PythonEnv& env, std::vector<Finding>& findings) {
  for (const facts::Distribution& distribution : *env.distributions) {
    if (leftover_of(distribution, "torch")) {
      Finding made = broken(input, env, "leftover", distribution);
      made.severity = find_distributions(env, "torch").size() > 1 || has_torch(env)
                          ? Severity::warning
                          : Severity::error;
      made.args["location"] = distribution.location;
      made.evidence.push_back({"file", distribution.location, distribution.version});
      findings.push_back(std::move(made));
    }
    if (distribution.name != "torch" || is_leftover(distribution)) continue;
    if (distribution.files_missing > 0) {
      Finding made = broken(input, env, "missing_files", distribution);
      if (!is_imported_first(distribution.first_missing)) made.severity = Severity::warning;
      made.args["missing"] = std::to_string(distribution.files_missing);
      made.args["recorded"] = std::to_string(distribution.files_recorded);
      made.args["first"] = distribution.first_missing;
      made.evidence.push_back(
          {"file", distribution.location + "/RECORD", distribution.first_missing});
      findings.push_back(std::move(made));
    } else if (!distribution.has_record && distribution.kind == "dist-info" &&
               !from_conda(distribution) &&
               (distribution.installer == "pip" || distribution.installer == "uv")) {
      // pip can neither upgrade nor remove it; distribution packages (Debian, conda) have no RECORD
      // by design.
      Finding made = broken(input, env, "no_record", distribution);
      made.severity = Severity::warning;
      made.evidence.push_back({"file", distribution.location + "/RECORD", "not_present"});
      findings.push_back(std::move(made));
    }
  }
}

// version.py and the installer's record name two releases: one was written over the other, or
// somebody edited a file.
void versions_differ(const Input& input, const facts::PythonEnv& env,
                     std::vector<Finding>& findings) {
  const std::vector<const facts::Distribution*> records = find_distributions(env, "torch");
  if (records.size() != 1 || !env.torch.version || records[0]->kind != "dist-info" ||
      is_leftover(*records[0]))
    return;
  if (public_version(records[0]->version) == public_version(*env.torch.version)) return;
  Finding made = broken(input, env, "versions_differ", *records[0]);
  made.severity = Severity::warning;
  made.args["other"] = *env.torch.version;
  made.args["other_location"] = env.torch.version.source.detail;
  made.evidence.push_back({"file", records[0]->location, records[0]->version});
  made.evidence.push_back(seen(env.torch.version));
  findings.push_back(std::move(made));
}

// Damage at or behind the end of the file, or a file that is no ELF file at all: the loader refuses
// it. Other damage may be a part that nothing uses.
bool is_cut(const facts::Binary& binary) {
  if (!binary.unreadable.empty()) return !binary.damage.empty();
  return std::any_of(binary.damage.begin(), binary.damage.end(),
                     [&](const formats::Damage& one) { return one.offset >= binary.size_bytes; });
}

void damaged_files(const Input& input, const facts::PythonEnv& env, const std::string& release,
                   std::vector<Finding>& findings) {
  Finding torch = finding("torch_install_broken", Severity::warning, subject_of(env));
  Finding other = finding("package_file_damaged", Severity::warning, subject_of(env));
  std::vector<std::string> names;
  for (const facts::Binary& binary : env.binaries) {
    if (binary.damage.empty()) continue;
    const bool of_torch = is_torch_binary(env, binary);
    Finding& made = of_torch ? torch : other;
    if (made.evidence.empty()) {
      made.args["file"] = binary.path;
      made.args["byte"] = std::to_string(binary.damage.front().offset);
      made.args["what"] = binary.damage.front().what;
      made.args["size"] = format_bytes(binary.size_bytes);
      if (!of_torch && !binary.package.empty())
        made.args["command"] = install_packages(input, env, {binary.package}, InstallKind::repair);
    }
    if (of_torch && is_cut(binary)) made.severity = Severity::error;
    if (!of_torch) names.push_back(binary.package.empty() ? binary.path : binary.package);
    made.evidence.push_back(
        {"file", binary.path,
         format("{} (byte {})", binary.damage.front().what, binary.damage.front().offset)});
  }
  if (!torch.evidence.empty()) {
    torch.variant = "damaged_file";
    torch.args["version"] = release;
    torch.args["command"] = repair_command(input, env, release, env.torch.variant);
    torch.change = torch_change(env, release, env.torch.variant);
    findings.push_back(std::move(torch));
  }
  if (other.evidence.empty()) return;
  names.erase(std::unique(names.begin(), names.end()), names.end());
  other.args["packages"] = short_list(names);
  findings.push_back(std::move(other));
}

// Packages that torch's own binaries meet; a pip copy over a conda one elsewhere is the user's
// business.
bool meets_torch(std::string_view name) {
  constexpr std::string_view names[] = {"numpy",  "torchvision", "torchaudio",
                                        "triton", "mkl",         "intel-openmp"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names) ||
         starts_with(name, "nvidia-");
}

void pip_over_conda(const facts::PythonEnv& env, std::vector<Finding>& findings) {
  std::vector<std::string> parts;
  Finding made = finding("pip_over_conda", Severity::warning, subject_of(env));
  for (const facts::Distribution& wheel : *env.distributions) {
    if (from_conda(wheel) || wheel.kind == "conda-meta" || !meets_torch(wheel.name)) continue;
    for (const facts::Distribution* conda : find_distributions(env, wheel.name)) {
      if (!is_conda_record(*conda) || conda->version == wheel.version) continue;
      parts.push_back(format("{} {} / {}", wheel.name, conda->version, wheel.version));
      made.evidence.push_back({"file", wheel.location, wheel.version});
      made.evidence.push_back({"file", conda->location, conda->version});
    }
  }
  if (parts.empty()) return;
  made.args["packages"] = short_list(parts);
  made.args["env"] = env.path;
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_torch_install(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv& env : input.facts.envs) {
    damaged_files(input, env, torch_build_of(input, env).release, findings);
    if (!env.distributions) {
      if (failed(env.distributions) && has_torch(env))
        findings.push_back(
            cannot_tell("torch_install_broken", subject_of(env), why_missing(env.distributions)));
      continue;
    }
    two_records(input, env, findings);
    damaged(input, env, findings);
    versions_differ(input, env, findings);
    pip_over_conda(env, findings);
  }
  return findings;
}

namespace {

// What is lost with a package's missing files: "import" (of torch itself), "later" (a part that is
// opened when an operation first needs it), "" (not known).
std::string lost_with(const facts::PythonEnv& env, const facts::Distribution& package) {
  if (package.name == "typing-extensions") return "import";
  std::string lost;
  for (const facts::LoadedLibrary& library : env.loads) {
    if (!library.path.empty() || !brings_library(package.name, library.name)) continue;
    if (library.by != "dlopen") return "import";
    lost = "later";
  }
  return lost;
}

// Of the distribution's own packages, which strip files and leave some out after RECORD was written,
// and name no installer.
bool is_of_system(const facts::Distribution& distribution) {
  return distribution.installer.empty() || distribution.installer == "debian";
}

struct HalfRemoved {
  std::vector<std::string> names, leftovers;
  std::vector<std::string> specs;
  std::string lost;
};

void add_part(const facts::PythonEnv& env, const facts::Distribution& distribution,
              HalfRemoved& parts, Finding& made) {
  const bool leftover = is_leftover(distribution);
  (leftover ? parts.leftovers : parts.names)
      .push_back(distribution.name + " " + distribution.version);
  made.evidence.push_back(
      {"file", distribution.location, leftover ? "leftover" : distribution.first_missing});
  if (leftover) return;
  parts.specs.push_back(distribution.name + "==" + distribution.version);
  const std::string lost = lost_with(env, distribution);
  if (parts.lost != "import" && !lost.empty()) parts.lost = lost;
  if (made.args["first"].empty() || lost == "import")
    made.args["first"] = distribution.first_missing;
}

}  // namespace

std::vector<Finding> check_half_removed(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv& env : input.facts.envs) {
    if (!env.distributions) continue;
    Finding made = finding("package_half_removed", Severity::note, subject_of(env));
    HalfRemoved parts;
    for (const facts::Distribution& distribution : *env.distributions) {
      if (distribution.name == "torch" || leftover_of(distribution, "torch") ||
          (env.externally_managed && is_of_system(distribution)))
        continue;
      if (is_leftover(distribution) || distribution.files_missing > 0)
        add_part(env, distribution, parts, made);
    }
    if (parts.names.empty() && parts.leftovers.empty()) continue;
    if (parts.names.empty()) {
      made.variant = "leftover";
    } else {
      made.variant = parts.lost;
      made.severity = parts.lost == "import" ? Severity::error : Severity::warning;
      made.args["command"] = install_packages(input, env, parts.specs, InstallKind::repair);
      made.change = packages_change(env, parts.specs);
    }
    made.args["packages"] = short_list(parts.names.empty() ? parts.leftovers : parts.names);
    made.args["location"] = made.evidence.front().detail;
    made.args["env"] = env.path;
    findings.push_back(std::move(made));
  }
  return findings;
}

// There, and of another size than its installer recorded: edited, stripped, written over.
std::vector<Finding> check_changed_files(const Input& input) {
  std::vector<Finding> findings;
  for (const facts::PythonEnv& env : input.facts.envs) {
    if (!env.distributions) continue;
    Finding made = finding("package_files_changed", Severity::note, subject_of(env));
    std::vector<std::string> names, specs;
    for (const facts::Distribution& package : *env.distributions) {
      if (package.files_resized == 0 || is_leftover(package) || is_of_system(package)) continue;
      names.push_back(package.name + " " + package.version);
      specs.push_back(package.name + "==" + package.version);
      made.evidence.push_back({"file", package.location + "/RECORD",
                               format("{} ({})", package.first_resized, package.files_resized)});
      if (made.args["first"].empty()) made.args["first"] = package.first_resized;
      // A library of another size is another library; a module may be edited on purpose.
      if (contains(package.first_resized, ".so")) made.severity = Severity::warning;
    }
    if (names.empty()) continue;
    made.args["packages"] = short_list(names);
    made.args["env"] = env.path;
    made.args["command"] = install_packages(input, env, specs, InstallKind::repair);
    made.change = packages_change(env, specs);
    findings.push_back(std::move(made));
  }
  return findings;
}

std::vector<Finding> check_python_choice(const Input& input) {
  if (input.facts.envs.empty()) {
    Finding made = finding("no_python_env", Severity::warning, k_machine);
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
      made.evidence.push_back(
          {"env", name,
           has_variable(input.facts, name) ? variable(input.facts, name) : "not_present"});
    return {made};
  }
  const facts::PythonEnv* active = nullptr;
  const facts::PythonEnv* other = nullptr;
  for (const facts::PythonEnv& env : input.facts.envs) {
    if (env.active)
      active = &env;
    else if (other == nullptr && has_torch(env))
      other = &env;
  }
  if (active == nullptr || other == nullptr || has_torch(*active)) return {};
  if (failed(active->distributions)) {
    return {
        cannot_tell("wrong_python_env", subject_of(*active), why_missing(active->distributions))};
  }
  Finding made = finding("wrong_python_env", Severity::warning, subject_of(*active));
  made.args["active"] = active->path;
  made.args["other"] = other->path;
  made.args["version"] = torch_build_of(input, *other).release;
  made.args["interpreter"] = python_of(*other);
  made.variant = input.facts.origin == "image" ? "image" : other->kind == "conda" ? "conda" : "";
  // Nothing can be activated of a system's Python: the environment in use gets a torch of its own.
  if (made.variant.empty() && other->kind != "venv") {
    const TorchStep step = torch_step(input, *active);
    made.variant = step.pick && step.blocked.empty() ? "own_torch" : "text";
    add_torch_step(*active, step, made);
  }
  made.evidence.push_back(
      {"file", active->site_packages.empty() ? active->path : active->site_packages.front(),
       "no torch"});
  made.evidence.push_back(seen(other->torch.version));
  return {made};
}

}  // namespace cufit::checks
