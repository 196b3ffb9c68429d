// SPDX-License-Identifier: Apache-2.0
#include "checks/torch_env.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::checks {

bool has_torch(const facts::PythonEnv& env) {
  return !env.torch.path.empty() || env.torch.version || find_distribution(env, "torch") != nullptr;
}

std::vector<const facts::PythonEnv*> torch_envs(const facts::Facts& facts) {
  std::vector<const facts::PythonEnv*> found;
  for (const facts::PythonEnv& env : facts.envs)
    if (has_torch(env)) found.push_back(&env);
  return found;
}

namespace {

bool is_of_project(const facts::PythonEnv& env) {
  return env.found_by == "default" &&
         (starts_with(env.path, "./") || contains(env.path, "/.pixi/envs/"));
}

// Somebody chose an environment; a Python of the system is in PATH without that.
bool activated(const facts::Facts& facts) {
  return std::any_of(facts.envs.begin(), facts.envs.end(), [](const facts::PythonEnv& env) {
    return env.active && (env.found_by != "PATH" || env.kind != "system");
  });
}

}  // namespace

const facts::PythonEnv* main_env(const facts::Facts& facts) {
  std::vector<const facts::PythonEnv*> with_torch = torch_envs(facts);
  for (const facts::PythonEnv* env : with_torch)
    if (env->active) return env;
  if (with_torch.size() == 1) return with_torch[0];
  if (!with_torch.empty()) return nullptr;
  // Nobody has torch: the environment of the project one stands in is what is to get it, before the
  // Python that PATH happens to name.
  for (const facts::PythonEnv& env : facts.envs)
    if (is_of_project(env) && !activated(facts)) return &env;
  for (const facts::PythonEnv& env : facts.envs)
    if (env.active) return &env;
  return facts.envs.size() == 1 ? &facts.envs[0] : nullptr;
}

namespace {

void take_tag(const Input& input, const std::string& tag, const Source& source, TorchBuild& build) {
  if (tag == "cpu")
    build.kind = "cpu";
  else if (starts_with(tag, "rocm"))
    build.kind = "rocm";
  else if (starts_with(tag, "xpu"))
    build.kind = "xpu";
  else if (starts_with(tag, "cu"))
    build.kind = "cuda";
  else
    return;
  build.tag = tag;
  build.source = source;
  const knowledge::CudaTag* row =
      build.kind == "cuda" ? input.knowledge.find_cuda_tag(tag) : nullptr;
  if (row == nullptr || build.cuda) return;
  build.cuda = parse_version(row->cuda);
  build.cuda_exact = build.cuda.has_value();
}

void take_libraries(const facts::PythonEnv& env, TorchBuild& build) {
  for (const facts::Binary& binary : env.binaries) {
    if (!is_torch_binary(env, binary)) continue;
    for (const std::string& needed : binary.needed) {
      // libcudart.so.12, or the hashed name of bundled builds: libcudart-<hash>.so.11.0
      size_t so = needed.find(".so.");
      if (!starts_with(needed, "libcudart") || so == std::string::npos) continue;
      build.kind = "cuda";
      build.source = {SourceKind::file, binary.path + " NEEDED " + needed};
      build.cuda = parse_version(needed.substr(so + 4));
      if (build.cuda) build.cuda->parts.resize(1);
      return;
    }
  }
}

}  // namespace

TorchBuild torch_build_of(const Input& input, const facts::PythonEnv& env) {
  TorchBuild build;
  const facts::TorchFacts& torch = env.torch;
  const facts::Distribution* package = find_distribution(env, "torch");
  std::string version = torch.version ? *torch.version : package != nullptr ? package->version : "";
  build.release = version.substr(0, version.find('+'));
  if (torch.cuda && (build.cuda = parse_version(*torch.cuda))) {
    build.kind = "cuda";
    build.cuda_exact = build.cuda->parts.size() > 1;
    build.source = torch.cuda.source;
  } else if (torch.hip && !torch.hip->empty()) {
    build.kind = "rocm";
    build.source = torch.hip.source;
  }
  std::string tag = torch.variant;
  if (tag.empty() && version.find('+') != std::string::npos)
    tag = version.substr(version.find('+') + 1);
  if (build.kind.empty())
    take_tag(input, tag, torch.version ? torch.version.source : Source{}, build);
  else if (build.kind == "cuda" && starts_with(tag, "cu"))
    build.tag = tag;
  if (build.kind.empty()) take_libraries(env, build);
  if (build.kind == "cuda" && build.tag.empty() && build.cuda && build.cuda_exact)
    build.tag = "cu" + std::to_string(build.cuda->part(0)) + std::to_string(build.cuda->part(1));
  // version.py says `cuda = None`: read, and built without CUDA.
  if (build.kind.empty() && torch.cuda.why == WhyNot::not_present && torch.version) {
    build.kind = "cpu";
    build.source = torch.cuda.source;
  }
  return build;
}

bool is_torch_binary(const facts::PythonEnv&, const facts::Binary& binary) {
  if (!binary.package.empty())
    return binary.package == "torch" || binary.package == "libtorch" || binary.package == "pytorch";
  return contains(binary.path, "/torch/lib/") || starts_with(binary.path, "torch/lib/");
}

const facts::Binary* torch_main_library(const facts::PythonEnv& env) {
  for (std::string_view wanted :
       {"libtorch_cuda.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so"})
    for (const facts::Binary& binary : env.binaries)
      if (file_name(binary.path) == wanted && is_torch_binary(env, binary)) return &binary;
  return nullptr;
}

size_t place_on_path(const facts::PythonEnv& env, const facts::Distribution& distribution) {
  for (size_t i = 0; i < env.site_packages.size(); ++i) {
    const std::string& site = env.site_packages[i];
    if (starts_with(distribution.location, site) && distribution.location.size() > site.size() &&
        distribution.location[site.size()] == '/')
      return i;
  }
  return env.site_packages.size();
}

bool brings_library(std::string_view package, std::string_view library) {
  static constexpr std::pair<std::string_view, std::string_view> k_brings[] = {
      {"libcudnn", "cudnn"},       {"libcublas", "cublas"},         {"libcudart", "cuda-runtime"},
      {"libnvrtc", "cuda-nvrtc"},  {"libcufft", "cufft"},           {"libcurand", "curand"},
      {"libcusolver", "cusolver"}, {"libcusparseLt", "cusparselt"}, {"libcusparse", "cusparse"},
      {"libnccl", "nccl"},         {"libnvshmem", "nvshmem"},       {"libnvJitLink", "nvjitlink"},
      {"libcupti", "cuda-cupti"},  {"libcufile", "cufile"},         {"libnvToolsExt", "nvtx"},
      {"libnvtx", "nvtx"}};
  for (const auto& [stem, part] : k_brings) {
    if (!starts_with(library, stem)) continue;
    const std::string name = "nvidia-" + std::string(part);
    return package == name ||
           (starts_with(package, name + "-cu") && package.size() == name.size() + 5);
  }
  return false;
}

const facts::Distribution* find_distribution(const facts::PythonEnv& env, std::string_view name) {
  if (!env.distributions) return nullptr;
  const facts::Distribution* found = nullptr;
  size_t found_at = 0;
  for (const facts::Distribution& distribution : *env.distributions) {
    if (distribution.name != name) continue;
    const size_t at = place_on_path(env, distribution);
    if (found != nullptr && found_at <= at) continue;
    found = &distribution;
    found_at = at;
  }
  if (found != nullptr) return found;
  // conda calls the same package pytorch.
  return name == "torch" ? find_distribution(env, "pytorch") : nullptr;
}

const facts::DriverLibrary* loaded_driver_library(const facts::Facts& facts,
                                                  std::string_view soname) {
  for (const facts::DriverLibrary& library : facts.driver_libraries)
    if (library.loads && library.soname == soname) return &library;
  return nullptr;
}

const facts::DriverLibrary* active_compat(const Input& input) {
  const facts::DriverLibrary* library = loaded_driver_library(input.facts, "libcuda.so.1");
  return library != nullptr && library->origin == "compat" ? library : nullptr;
}

CompatGpu compat_gpu(const GpuView& gpu) {
  if (gpu.row != nullptr) {
    std::string_view segment = gpu.row->segment;
    if (segment == "datacenter" || (segment == "embedded" && contains(gpu.row->name, "Jetson")))
      return CompatGpu::eligible;
    if (segment == "consumer") return CompatGpu::not_eligible;
  }
  std::string brand = gpu.nvml != nullptr ? gpu.nvml->brand.value_or("") : "";
  std::string name = lower(gpu.name);
  if (brand == "tesla") return CompatGpu::eligible;
  if (starts_with(brand, "geforce") || starts_with(brand, "titan") || contains(name, "geforce") ||
      contains(name, "titan "))
    return CompatGpu::not_eligible;
  return CompatGpu::unknown;  // workstation boards: some server models are allowed, no list says
                              // which
}

bool may_use_compat(const Input& input, const facts::DriverLibrary& compat) {
  if (input.gpus.empty() || !input.driver) return false;
  std::string branch = std::to_string(input.driver->part(0));
  const std::vector<std::string>& branches = compat.compat_drivers;
  if (std::find(branches.begin(), branches.end(), branch) == branches.end()) return false;
  return std::all_of(input.gpus.begin(), input.gpus.end(),
                     [](const GpuView& gpu) { return compat_gpu(gpu) == CompatGpu::eligible; });
}

bool forward_compat_helps(const std::vector<CompatCandidate>& gpus, const Version& driver,
                          const Version& cuda, const knowledge::Knowledge& knowledge) {
  const auto full = knowledge.full_driver(cuda);
  const auto allowed = [&](const CompatCandidate& gpu) {
    // The package is a newer driver's user-mode half, which has dropped old GPUs as that driver has.
    const knowledge::DriverWindow* window = gpu.cc ? knowledge.find_window(*gpu.cc) : nullptr;
    const bool drives = window == nullptr || window->last_branch == 0 || !full ||
                        full->part(0) <= window->last_branch;
    return gpu.kind == CompatGpu::eligible && drives;
  };
  if (gpus.empty() || !std::all_of(gpus.begin(), gpus.end(), allowed)) return false;
  const std::string branch = std::to_string(driver.part(0));
  for (const knowledge::ForwardCompat& row : knowledge.forward_compat) {
    const auto version = parse_version(row.cuda);
    if (!version || version->part(0) != cuda.part(0) || version->part(1) != cuda.part(1)) continue;
    const std::vector<std::string_view> branches = split(row.branches, ' ');
    if (std::find(branches.begin(), branches.end(), branch) != branches.end()) return true;
  }
  return false;
}

bool has_variable(const facts::Facts& facts, std::string_view name) {
  return std::any_of(facts.variables.begin(), facts.variables.end(),
                     [&](const facts::EnvVariable& variable) { return variable.name == name; });
}

std::string variable(const facts::Facts& facts, std::string_view name) {
  for (const facts::EnvVariable& variable : facts.variables)
    if (variable.name == name) return variable.value;
  return {};
}

bool in_container(const facts::Facts& facts) {
  const Fact<std::string>& kind = facts.system.container;
  return kind && *kind != "none" && !kind->empty();
}

bool is_wsl(const facts::Facts& facts) { return facts.system.wsl.value.has_value(); }
bool is_jetson(const facts::Facts& facts) { return facts.system.jetson.value.has_value(); }

std::string driver_text(const Version& driver) {
  std::string text = std::to_string(driver.part(0));
  for (size_t i = 1; i < driver.parts.size(); ++i) {
    const bool padded = i == 2 && driver.parts[i] < 10 && driver.parts[1] >= 10;
    text += (padded ? ".0" : ".") + std::to_string(driver.parts[i]);
  }
  return text;
}

bool at_least(const Version& driver, const Version& floor) {
  if (driver.parts.size() == 1) return driver.part(0) >= floor.part(0);
  return driver >= floor;
}

}  // namespace cufit::checks
