// SPDX-License-Identifier: Apache-2.0
// Compiled extensions of torch (torchvision, flash-attn, xformers, bitsandbytes, ...): the same
// CUDA major, symbols that this torch defines, this Python, and code for this GPU. Packages that
// ship one library per CUDA version are judged by the one that torch's version would pick.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/gpu_code.h"
#include "checks/install/after_step.h"
#include "checks/install/extension_release.h"
#include "checks/install/torch_command.h"
#include "checks/torch_checks.h"
#include "formats/python/requirement.h"

namespace cufit::checks {

namespace {

using facts::Binary;

struct Package {
  std::string name;
  std::vector<const Binary*> files;
};

struct ExtensionsCase {
  const Input& input;
  const facts::PythonEnv& env;
  const TorchBuild& build;
  const Package& package;
};

// NVIDIA's own wheels and Triton are libraries of torch, not extensions of it.
bool is_library_package(const Binary& binary) {
  for (std::string_view prefix : {"nvidia-", "triton", "pytorch-triton", "cuda-", "nvidia_"})
    if (starts_with(binary.package, prefix)) return true;
  return contains(binary.path, "/nvidia/") || contains(binary.path, "/triton/");
}

std::vector<Package> packages_of(const facts::PythonEnv& env) {
  std::map<std::string, Package> by_name;
  for (const Binary& binary : env.binaries) {
    if (is_torch_binary(env, binary) || is_library_package(binary)) continue;
    std::string name = binary.package.empty() ? binary.path : binary.package;
    by_name[name].name = name;
    by_name[name].files.push_back(&binary);
  }
  std::vector<Package> packages;
  for (auto& [name, package] : by_name) packages.push_back(std::move(package));
  return packages;
}

bool links_torch(const Binary& binary) {
  return binary.unresolved_count > 0 || !binary.cxx11_abi.empty() ||
         std::any_of(binary.needed.begin(), binary.needed.end(), [](const std::string& needed) {
           return starts_with(needed, "libtorch") || starts_with(needed, "libc10");
         });
}

// "libcudart.so.12" -> 12; 11.x has the soname libcudart.so.11.0.
uint32_t cudart_major(const Binary& binary, std::string* soname = nullptr) {
  for (const std::string& needed : binary.needed) {
    if (!starts_with(needed, "libcudart")) continue;
    size_t so = needed.find(".so.");
    auto version = so == std::string::npos ? std::nullopt : parse_version(needed.substr(so + 4));
    if (!version) continue;
    if (soname != nullptr) *soname = needed;
    return version->part(0);
  }
  return 0;
}

// libbitsandbytes_cuda126.so -> 126; libraries with a static runtime name their CUDA only so.
uint32_t named_cuda(const Binary& binary) {
  std::string_view name = file_name(binary.path);
  size_t at = name.find("cuda");
  if (at == std::string_view::npos || name.size() < at + 7) return 0;
  auto number = parse_version(name.substr(at + 4));
  return number && number->part(0) >= 100 && number->part(0) < 1000 ? number->part(0) : 0;
}

uint32_t named_major(const Binary& binary) { return named_cuda(binary) / 10; }

uint32_t extension_major_of(const Binary& binary) {
  uint32_t linked = cudart_major(binary);
  return linked ? linked : named_major(binary);
}

std::string path_in(const facts::PythonEnv& env, const Binary& binary) {
  return starts_with(binary.path, "/") ? binary.path : env.path + "/" + binary.path;
}

std::string version_of(const facts::PythonEnv& env, const std::string& package) {
  const facts::Distribution* distribution = find_distribution(env, package);
  return distribution != nullptr ? distribution->version : "";
}

Finding about(const ExtensionsCase& c, const char* id, Severity severity, const Binary& binary) {
  Finding made = finding(id, severity, path_in(c.env, binary));
  made.args = {{"package", c.package.name},
               {"version", version_of(c.env, c.package.name)},
               {"file", std::string(file_name(binary.path))},
               {"torch", c.build.release},
               {"tag", c.build.tag},
               {"pip_install", pip_install_of(c.env)},
               {"install", install_packages(c.input, c.env, {c.package.name})}};
  return made;
}

bool is_present(const facts::PythonEnv& env, const std::string& soname) {
  auto there = [&](const facts::LoadedLibrary& library) {
    return library.name == soname && !library.path.empty();
  };
  return std::any_of(env.loads.begin(), env.loads.end(), there) ||
         std::any_of(env.shadowed.begin(), env.shadowed.end(), there);
}

// The step as a command where a release for this torch is known and is not the installed one. The
// same release may be built for another CUDA: PyTorch's index has a file for each.
void add_release(const ExtensionsCase& c, Finding& made) {
  if (!c.build.cuda) return;
  const std::string& package = c.package.name;
  const knowledge::ExtensionRow* row =
      extension_release(c.input, package, c.build.release, *c.build.cuda);
  const facts::Distribution* installed = find_distribution(c.env, package);
  // flash-attn has no files for pip to find: its releases are built or fetched by hand.
  if (row == nullptr || installed == nullptr || package == "flash-attn") return;
  const bool other_build = made.id == "ext_cuda_major_mismatch" &&
                           is_on_torch_index(package, *row) && !c.build.tag.empty();
  if (!other_build && public_version(installed->version) == row->version &&
      local_version(installed->version).empty())
    return;
  made.args["wanted"] = std::string(row->version);
  made.args["command"] = extension_command(c.input, c.env, package, *row, c.build.tag);
  made.variant = made.variant.empty() ? "release" : made.variant + ".release";
  made.change = packages_change(c.env, {package + "==" + std::string(row->version)});
  made.change->other_files = true;
}

void check_major(const ExtensionsCase& c, std::vector<Finding>& found) {
  if (!c.build.cuda) return;
  uint32_t torch = c.build.cuda->part(0);
  const Binary* wrong = nullptr;
  std::string soname;
  // One library per CUDA ("libbitsandbytes_cuda117.so"): it opens the one for torch's alone, and
  // dependencies.cc says where that is not there.
  const bool one_per_cuda =
      std::count_if(c.package.files.begin(), c.package.files.end(),
                    [](const Binary* binary) { return named_major(*binary) != 0; }) > 1;
  for (const Binary* binary : c.package.files) {
    if (one_per_cuda && named_major(*binary) != 0) continue;
    uint32_t major = extension_major_of(*binary);
    if (major == torch) return;  // the package brings a build for this CUDA
    std::string name;
    if (major == 0 || wrong != nullptr || cudart_major(*binary, &name) == 0) continue;
    // Only what works inside torch's process has to share its CUDA: other programs bring their own.
    bool partner = links_torch(*binary) || named_major(*binary) != 0;
    if (!partner) continue;
    wrong = binary;
    soname = name;
  }
  if (wrong == nullptr) return;
  bool loads = is_present(c.env, soname);
  Finding made =
      about(c, "ext_cuda_major_mismatch", loads ? Severity::warning : Severity::error, *wrong);
  made.variant = loads ? "both_present" : "";
  made.args["have"] = std::to_string(extension_major_of(*wrong));
  made.args["need"] = std::to_string(torch);
  made.args["soname"] = soname;
  made.evidence = {{"file", path_in(c.env, *wrong), "NEEDED " + soname},
                   seen(c.build.source, "CUDA " + c.build.cuda->text())};
  if (!loads) add_release(c, made);
  found.push_back(std::move(made));
}

// "cupy-cuda12x" -> "cupy-cuda13x": packages whose name has their CUDA; empty = it has none.
std::string named_for(const std::string& package, uint32_t cuda) {
  const size_t at = package.rfind("cuda1");
  if (at == std::string::npos || at + 7 != package.size() || package.back() != 'x') return {};
  return package.substr(0, at) + "cuda" + std::to_string(cuda) + "x";
}

// Packages that link nothing of torch (cupy, onnxruntime-gpu): what they need of CUDA comes from
// the same environment, and it holds another CUDA.
void check_not_found(const ExtensionsCase& c, std::vector<Finding>& found) {
  if (!c.build.cuda) return;
  std::vector<std::string> names;
  const Binary* first = nullptr;
  for (const Binary* binary : c.package.files) {
    if (named_major(*binary) != 0) continue;
    for (const std::string& name : binary->not_found)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (first == nullptr && !binary->not_found.empty()) first = binary;
  }
  if (first == nullptr) return;
  Finding made = about(c, "ext_cuda_major_mismatch", Severity::error, *first);
  const uint32_t torch = c.build.cuda->part(0);
  made.args["need"] = std::to_string(torch);
  made.args["soname"] = short_list(names, 4);
  made.variant = "libraries";
  for (const std::string& name : names)
    made.evidence.push_back({"file", path_in(c.env, *first), "NEEDED " + name});
  const std::string other = named_for(c.package.name, torch);
  if (!other.empty() && other != c.package.name) {
    made.variant = "named";
    made.args["command"] = remove_command(c.input, c.env, c.package.name) + " && " +
                           install_packages(c.input, c.env, {other});
  }
  found.push_back(std::move(made));
}

// "3.12" -> "cpython-312"
std::string python_tag(const facts::PythonEnv& env) {
  auto version = env.python ? parse_version(*env.python) : std::nullopt;
  if (!version || version->parts.size() < 2) return {};
  return "cpython-" + std::to_string(version->part(0)) + std::to_string(version->part(1));
}

std::string_view stem(const Binary& binary) {
  std::string_view name = file_name(binary.path);
  return name.substr(0, name.find('.'));
}

void check_python(const ExtensionsCase& c, std::vector<Finding>& found) {
  std::string want = python_tag(c.env);
  for (const Binary* binary : c.package.files) {
    if (binary->python_tag.empty() || binary->python_tag == "abi3" || binary->python_tag == want)
      continue;
    bool served =
        std::any_of(c.package.files.begin(), c.package.files.end(), [&](const Binary* other) {
          return stem(*other) == stem(*binary) &&
                 (other->python_tag == want || other->python_tag == "abi3");
        });
    if (served) continue;
    if (want.empty()) {
      found.push_back(cannot_tell("ext_abi_mismatch", path_in(c.env, *binary),
                                  "Python version: " + why_missing(c.env.python)));
      found.back().args = about(c, "", Severity::unknown, *binary).args;
      return;
    }
    Finding made = about(c, "ext_abi_mismatch", Severity::error, *binary);
    made.variant = "python";
    made.args["have"] = binary->python_tag;
    made.args["need"] = want;
    made.evidence = {{"file", path_in(c.env, *binary), binary->python_tag}, seen(c.env.python)};
    found.push_back(std::move(made));
    return;
  }
}

// torch's own C++11 ABI, as libc10 or another library of torch shows it.
const Binary* torch_abi(const facts::PythonEnv& env) {
  for (const Binary& binary : env.binaries)
    if (is_torch_binary(env, binary) && !binary.cxx11_abi.empty()) return &binary;
  return nullptr;
}

// "at::_ops::add_Tensor::call" of "_ZN2at4_ops10add_Tensor4callERKNS_6TensorE": the nested name of
// the Itanium ABI, without its arguments. A full demangler may make gigabytes of a made name.
std::string readable_symbol(const std::string& symbol) {
  constexpr size_t k_most = 96;
  std::string_view rest = symbol;
  std::vector<std::string> parts;
  if (starts_with(rest, "_ZN")) {
    rest.remove_prefix(3);
    if (starts_with(rest, "K")) rest.remove_prefix(1);  // a const member
    size_t digits = 0;
    while ((digits = rest.find_first_not_of("0123456789")) != 0 && digits <= 4) {
      const uint64_t size = parse_uint(rest.substr(0, digits)).value_or(0);
      rest.remove_prefix(digits);
      if (size == 0 || size > rest.size()) break;
      parts.emplace_back(rest.substr(0, size));
      rest.remove_prefix(size);
    }
  }
  std::string out = parts.empty() ? symbol : join(parts, "::");
  if (out.size() > k_most) out = out.substr(0, k_most) + "...";
  return out;
}

void check_symbols(const ExtensionsCase& c, std::vector<Finding>& found) {
  const Binary* torch = torch_abi(c.env);
  const Binary* worst = nullptr;
  bool other_abi = false;
  for (const Binary* binary : c.package.files) {
    bool abi =
        torch != nullptr && !binary->cxx11_abi.empty() && binary->cxx11_abi != torch->cxx11_abi;
    if (binary->unresolved_count == 0 && !abi) continue;
    if (worst == nullptr) {
      worst = binary;
      other_abi = abi;
    }
  }
  if (worst == nullptr) return;
  Finding made = about(c, "ext_abi_mismatch", Severity::error, *worst);
  made.variant = other_abi ? "cxx11" : "";
  made.args["symbol"] = worst->unresolved.empty() ? "" : readable_symbol(worst->unresolved[0]);
  made.args["count"] = std::to_string(worst->unresolved_count);
  if (other_abi) {
    made.args["have"] = worst->cxx11_abi;
    made.args["need"] = torch->cxx11_abi;
    made.evidence.push_back(
        {"file", path_in(c.env, *worst), "_GLIBCXX_USE_CXX11_ABI=" + worst->cxx11_abi});
    made.evidence.push_back(
        {"file", path_in(c.env, *torch), "_GLIBCXX_USE_CXX11_ABI=" + torch->cxx11_abi});
  }
  for (size_t i = 0; i < worst->unresolved.size() && i < 3; ++i)
    made.evidence.push_back(
        {"file", path_in(c.env, *worst), "undefined " + readable_symbol(worst->unresolved[i])});
  add_release(c, made);
  found.push_back(std::move(made));
}

struct ArchResult {
  const Binary* failing = nullptr;  // first file with code, but none for this GPU
  const Binary* ptx_too_new = nullptr;
  CodeMatch match;
  bool served = false;  // some file of the package has code for it
  bool damaged = false;
};

// The CUDA whose library is loaded where a package has one per CUDA: torch's own, or the one that
// BNB_CUDA_VERSION names; 0 = none of just that CUDA is there.
uint32_t loaded_cuda(const ExtensionsCase& c) {
  if (!c.build.cuda) return 0;
  uint32_t wanted = c.build.cuda->part(0) * 10 + c.build.cuda->part(1);
  if (const auto forced = parse_version(variable(c.input.facts, "BNB_CUDA_VERSION")))
    wanted = forced->part(0);
  return std::any_of(c.package.files.begin(), c.package.files.end(),
                     [&](const Binary* binary) { return named_cuda(*binary) == wanted; })
             ? wanted
             : 0;
}

ArchResult match_package(const ExtensionsCase& c, const GpuGroup& group) {
  ArchResult result;
  const uint32_t loaded = loaded_cuda(c);
  for (const Binary* binary : c.package.files) {
    const uint32_t major = named_major(*binary);
    if (major != 0 && c.build.cuda && major != c.build.cuda->part(0))
      continue;  // not the one that torch picks
    if (major != 0 && loaded != 0 && named_cuda(*binary) != loaded) continue;
    CodeMatch match =
        match_code(binary->device_code, group.cc, c.input.driver_cuda, c.input.knowledge);
    if (match.match == Match::no_code) continue;
    if (match.match == Match::none) {
      if (result.failing == nullptr) result.failing = binary;
      result.damaged = result.damaged || !binary->damage.empty();
    } else if (match.match == Match::ptx_too_new) {
      if (result.ptx_too_new == nullptr) result.match = match, result.ptx_too_new = binary;
    } else {
      result.served = true;
    }
  }
  return result;
}

void check_archs(const ExtensionsCase& c, const GpuGroup& group, std::vector<Finding>& found) {
  ArchResult result = match_package(c, group);
  if (result.ptx_too_new != nullptr && !result.served) {
    Finding made = about(c, "ptx_newer_than_driver", Severity::warning, *result.ptx_too_new);
    made.variant = "extension";
    made.args["gpu"] = group.text();
    made.args["ptx_isa"] = result.match.ptx_isa;
    made.args["needs_cuda"] = result.match.needs_cuda;
    made.args["driver_cuda"] = c.input.driver_cuda ? c.input.driver_cuda->text() : "";
    made.evidence = {
        {"file", path_in(c.env, *result.ptx_too_new), list_archs(result.ptx_too_new->device_code)}};
    found.push_back(std::move(made));
    return;
  }
  if (result.failing == nullptr) return;
  // A package with other files that serve the GPU keeps special kernels for other GPUs beside them
  // (FlashAttention 3 is sm_90a only): worth a note, not a warning.
  Severity severity = result.served ? Severity::note : Severity::warning;
  Finding made = about(c, "ext_arch_missing", severity, *result.failing);
  made.variant = result.served ? "partly" : "";
  made.args["gpu"] = group.text();
  made.args["cc"] = group.cc.text();
  made.args["archs"] = list_archs(result.failing->device_code);
  made.evidence = {{"file", path_in(c.env, *result.failing), made.args["archs"]},
                   seen(group.gpus[0]->cc_source, group.cc.text())};
  if (result.damaged) {
    made.severity = Severity::unknown;
    made.unknown_because = path_in(c.env, *result.failing) +
                           " is damaged; code may lie in the part that could not be read";
  }
  found.push_back(std::move(made));
}

// One package that cannot be loaded is one cause, whatever else is wrong with it: the first error
// stands, what the others saw is evidence of it.
void add_first_cause(std::vector<Finding> of_package, std::vector<Finding>& found) {
  const auto is_error = [](const Finding& one) { return one.severity == Severity::error; };
  const auto error = std::find_if(of_package.begin(), of_package.end(), is_error);
  if (error == of_package.end()) {
    for (Finding& one : of_package) found.push_back(std::move(one));
    return;
  }
  for (Finding& other : of_package) {
    if (&other == &*error || other.severity == Severity::note) continue;
    if (other.id != error->id) error->consequences.push_back(other.id);
    for (Evidence& one : other.evidence) error->evidence.push_back(std::move(one));
  }
  found.push_back(std::move(*error));
}

}  // namespace

std::vector<Finding> check_extensions(const Input& input) {
  std::vector<Finding> found;
  std::vector<GpuGroup> groups = group_gpus(input);
  for (const facts::PythonEnv* env : torch_envs(input.facts)) {
    TorchBuild build = torch_build_of(input, *env);
    for (const Package& package : packages_of(*env)) {
      ExtensionsCase c{input, *env, build, package};
      std::vector<Finding> of_package;
      check_python(c, of_package);
      check_symbols(c, of_package);
      if (build.kind == "cuda") {
        check_major(c, of_package);
        check_not_found(c, of_package);
        for (const GpuGroup& group : groups) check_archs(c, group, of_package);
      }
      add_first_cause(std::move(of_package), found);
    }
  }
  return found;
}

}  // namespace cufit::checks
