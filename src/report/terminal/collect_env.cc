// SPDX-License-Identifier: Apache-2.0
#include "report/collect_env.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "facts/cuda_libraries.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr const char* k_unknown = "Could not collect";
constexpr const char* k_none = "N/A";

// Substrings of package names that the tool lists: its common, NVIDIA and oneAPI patterns.
constexpr std::string_view k_common[] = {"torch",
                                         "numpy",
                                         "triton",
                                         "optree",
                                         "cuda-cudart",
                                         "cuda-cupti",
                                         "cuda-libraries",
                                         "cuda-opencl",
                                         "cuda-nvrtc",
                                         "cuda-runtime",
                                         "cublas",
                                         "cudnn",
                                         "cufft",
                                         "curand",
                                         "cusolver",
                                         "cusparse",
                                         "nccl",
                                         "nvjitlink",
                                         "nvtx",
                                         "dpcpp-cpp-rt",
                                         "intel-cmplr-lib-rt",
                                         "intel-cmplr-lib-ur",
                                         "intel-cmplr-lic-rt",
                                         "intel-opencl-rt",
                                         "intel-sycl-rt",
                                         "mkl",
                                         "onemkl-sycl-blas",
                                         "onemkl-sycl-dft",
                                         "onemkl-sycl-lapack",
                                         "onemkl-sycl-rng",
                                         "onemkl-sycl-sparse",
                                         "intel-openmp",
                                         "tbb",
                                         "impi-rt",
                                         "impi-devel",
                                         "oneccl",
                                         "intel-pti",
                                         "umf",
                                         "tcmlib"};
constexpr std::string_view k_pip_names[] = {"mypy", "flake8", "onnx"};
constexpr std::string_view k_conda[] = {"cudatoolkit", "soumith", "magma"};

template <size_t n>
bool matches(const std::string& text, const std::string_view (&patterns)[n]) {
  return std::any_of(patterns, patterns + n, [&](std::string_view p) { return contains(text, p); });
}

std::string value_or(const Fact<std::string>& fact, const char* otherwise) {
  return fact ? *fact : std::string(otherwise);
}

class Collector {
 public:
  explicit Collector(const facts::Facts& facts) : facts_(facts) {
    static const facts::PythonEnv k_no_env;
    env_ = facts.envs.empty() ? &k_no_env : &facts.envs.front();
    has_torch_ = env_->torch.version.value.has_value();
  }

  CollectEnv collect() {
    torch();
    machine();
    python();
    cuda();
    other_devices();
    cpu();
    packages();
    no_cuda();
    return std::move(out_);
  }

 private:
  void torch() {
    const facts::TorchFacts& torch = env_->torch;
    out_.torch_version = value_or(torch.version, k_none);
    if (!has_torch_) {
      out_.is_debug_build = out_.cuda_compiled_version = out_.hip_compiled_version = k_none;
      return;
    }
    out_.is_debug_build = torch.debug ? (*torch.debug ? "True" : "False") : k_unknown;
    out_.cuda_compiled_version = torch.cuda ? *torch.cuda : torch.hip ? k_none : k_unknown;
    out_.hip_compiled_version = value_or(torch.hip, k_none);
  }

  void machine() {
    const facts::SystemFacts& system = facts_.system;
    out_.os = value_or(system.distribution, k_unknown);
    if (system.distribution && system.architecture) out_.os += " (" + *system.architecture + ")";
    out_.gcc_version = value_or(facts_.collect_env.gcc, k_unknown);
    out_.clang_version = value_or(facts_.collect_env.clang, k_unknown);
    out_.cmake_version = value_or(facts_.collect_env.cmake, k_unknown);
    out_.libc_version = system.glibc ? "glibc-" + *system.glibc : k_none;
  }

  void python() {
    const facts::SystemFacts& system = facts_.system;
    // The tool adds the pointer size; every architecture that cufit runs on has 64 bits.
    out_.python_version = env_->python ? *env_->python + " (64-bit runtime)" : k_unknown;
    out_.python_platform = k_unknown;
    if (system.kernel && system.architecture) {
      out_.python_platform = "Linux-" + *system.kernel + "-" + *system.architecture;
      if (system.glibc) out_.python_platform += "-with-glibc" + *system.glibc;
    }
  }

  // Only what the driver answered counts: torch asks it for the number of devices and nothing else.
  std::string cuda_available() const {
    if (!has_torch_) return k_none;
    if (!env_->torch.cuda) return env_->torch.cuda.why == WhyNot::not_present ? "False" : k_unknown;
    const facts::CudaFacts& cuda = facts_.cuda;
    if (cuda.init_result) {
      if (*cuda.init_result != 0) return "False";
      // The runtime refuses an older major (error 35), and torch then counts no device.
      const std::optional<Version> runtime = parse_version(*env_->torch.cuda);
      if (runtime && cuda.driver_version &&
          *cuda.driver_version / 1000 < static_cast<int>(runtime->part(0)))
        return "False";
      if (cuda.device_count) return *cuda.device_count > 0 ? "True" : "False";
      return cuda.init_result.source.kind == SourceKind::claimed ? "True" : k_unknown;
    }
    if (env_->torch_run && contains(*env_->torch_run, "is_available() is False")) return "False";
    return cuda.init_result.why == WhyNot::not_present ? "False" : k_unknown;  // no libcuda at all
  }

  void cuda() {
    out_.is_cuda_available = cuda_available();
    out_.cuda_runtime_version = k_unknown;
    // The tool prints what `nvcc --version` says; a toolkit outside of PATH does not count for it.
    for (const facts::Toolkit& toolkit : facts_.toolkits) {
      if (!toolkit.on_path && toolkit.found_by != "claimed") continue;
      out_.cuda_runtime_version = value_or(toolkit.nvcc_version, k_unknown);
    }
    out_.cuda_module_loading = k_none;
    if (out_.is_cuda_available == "True") {
      out_.cuda_module_loading = variable("CUDA_MODULE_LOADING");
      if (out_.cuda_module_loading.empty())
        out_.cuda_module_loading = value_or(env_->torch.module_loading, "");
    }
    out_.nvidia_gpu_models = gpus();
    const Fact<std::string>& driver =
        facts_.nvml.driver_version ? facts_.nvml.driver_version : facts_.kernel.version;
    out_.nvidia_driver_version = value_or(driver, k_unknown);
    out_.cudnn_version = cudnn();
  }

  std::string variable(std::string_view name) const {
    for (const facts::EnvVariable& variable : facts_.variables)
      if (variable.name == name) return variable.value;
    return {};
  }

  // The lines of `nvidia-smi -L` without UUIDs.
  std::string gpus() const {
    std::vector<std::string> lines;
    for (const facts::NvmlGpu& gpu : facts_.nvml.gpus) {
      if (!gpu.name) continue;
      lines.push_back(format("GPU {}: {}", gpu.index, *gpu.name));
      for (size_t i = 0; i < gpu.mig_instances.size(); ++i) {
        lines.push_back("  MIG " + pad(gpu.mig_instances[i].name, 12) + format("Device {:>2}:", i));
      }
    }
    if (lines.empty()) {
      for (const facts::CudaDevice& device : facts_.cuda.devices)
        if (device.name) lines.push_back(format("GPU {}: {}", device.ordinal, *device.name));
    }
    if (lines.empty()) return k_unknown;
    return (lines.size() > 1 ? "\n" : "") + join(lines, "\n");
  }

  // As the tool: what ld.so.cache lists, whether or not torch loads it. What torch loads stands in
  // our own section.
  std::string cudnn() const {
    std::vector<std::string> paths = facts_.collect_env.cudnn.value_or({});
    if (paths.empty()) return k_unknown;
    return paths.size() == 1 ? paths[0] : "Probably one of the following:\n" + join(paths, "\n");
  }

  void other_devices() {
    out_.is_xpu_available = has_torch_ ? "False" : k_none;
    bool hip = env_->torch.hip.value.has_value();
    out_.hip_runtime_version = out_.miopen_runtime_version = hip ? k_unknown : k_none;
    const Fact<bool>& xnnpack = env_->torch.xnnpack;
    out_.is_xnnpack_available = !has_torch_ ? k_none
                                : !xnnpack  ? k_unknown
                                : *xnnpack  ? "True"
                                            : "False";
    std::vector<std::string> settings;
    for (const char* name :
         {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      std::string value = variable(name);
      if (!value.empty()) settings.push_back(format("'{}': '{}'", name, value));
    }
    out_.caching_allocator_config = settings.empty() ? k_none : "{" + join(settings, ", ") + "}";
  }

  void cpu() {
    const facts::SystemFacts& system = facts_.system;
    for (const facts::CpuLine& line : facts_.collect_env.cpu)
      out_.cpu_info.emplace_back(line.label, line.value);
    if (!out_.cpu_info.empty()) return;
    if (system.architecture) out_.cpu_info.emplace_back("Architecture", *system.architecture);
    if (system.cpus) out_.cpu_info.emplace_back("CPU(s)", std::to_string(*system.cpus));
    if (system.cpu_model) out_.cpu_info.emplace_back("Model name", *system.cpu_model);
  }

  void packages() {
    out_.conda = env_->kind == "conda" || env_->installer == "conda";
    if (!env_->distributions) return;
    for (const facts::Distribution& package : *env_->distributions) {
      if (package.kind == "leftover") continue;  // no package: pip and conda do not list it either
      const std::string& name = package.display_name.empty() ? package.name : package.display_name;
      std::string line = name + "==" + package.version;
      if (package.kind == "conda-meta") {
        out_.conda = true;
        if (!matches(line, k_common) && !matches(line, k_conda)) continue;
        out_.conda_packages.push_back(pad(name, 25) + " " + pad(package.version, 15) + " " +
                                      package.tag);
      } else if (matches(line, k_common) || matches(line, k_pip_names)) {
        out_.pip_packages.push_back(line);
      }
    }
  }

  // As the tool does: without CUDA and without any trace of it, the dynamic fields say so.
  void no_cuda() {
    if (out_.is_cuda_available != "False") return;
    for (const std::string* field :
         {&out_.cuda_runtime_version, &out_.nvidia_gpu_models, &out_.nvidia_driver_version})
      if (*field != k_unknown) return;
    out_.cuda_runtime_version = out_.nvidia_gpu_models = out_.nvidia_driver_version =
        out_.cudnn_version = "No CUDA";
    if (out_.cuda_compiled_version == k_unknown) out_.cuda_compiled_version = "None";
  }

  const facts::Facts& facts_;
  const facts::PythonEnv* env_;
  bool has_torch_ = false;
  CollectEnv out_;
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The folder of a library, "x/.." resolved, and relative to the environment where it lies inside.
std::string shown_folder(const std::string& path, const std::string& env) {
  std::string folder = normal_folder(path);
  if (!env.empty() && starts_with(folder, env + "/")) folder.erase(0, env.size() + 1);
  return folder;
}

// "CUDA libraries: libcublas.so.13 libcublasLt.so.13 (torch preload:
// lib/python3.12/site-packages/nvidia/cu13/lib)": one line for a folder and the rule that finds it,
// in the order of loading.
std::string libraries_by_folder(const facts::PythonEnv& env) {
  std::vector<std::pair<std::string, std::string>> groups;  // rule and folder, names
  std::string not_found;
  for (const facts::LoadedLibrary& library : env.loads) {
    if (library.path.empty()) {
      not_found +=
          format("would not be found: {}{}\n", library.name,
                 library.asked_by.empty() ? "" : format(" (needed by {})", library.asked_by));
      continue;
    }
    if (!facts::is_cuda_library(library.name)) continue;
    std::string key = library.by.empty() ? "" : library.by + ": ";
    key += shown_folder(library.path, env.path);
    auto same = [&](const auto& group) { return group.first == key; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), {key, ""});
    group->second += library.name + " ";
  }
  std::string out;
  for (const auto& [key, names] : groups) out += format("CUDA libraries: {}({})\n", names, key);
  return out + not_found;
}

std::string cufit_section(const DoctorView& view) {
  const checks::Report& report = view.report;
  std::string out = format("cufit:\ncufit version: {}\n", CUFIT_VERSION);
  out += format("verdict: {}\n",
                report.verdict == checks::LinkState::ok ? "works" : to_string(report.verdict));
  for (const checks::Finding& finding : report.findings) {
    out += format("{}: {}: {} ({})\n", to_string(finding.severity), finding.id,
                  one_line(finding_text(finding, "title", "en", view.knowledge)),
                  finding.subject.empty() ? "machine" : finding.subject);
    std::string next = one_line(finding_text(finding, "next", "en", view.knowledge));
    if (!next.empty()) out += format("  next: {}\n", next);
  }
  for (const facts::DriverLibrary& library : view.facts.driver_libraries) {
    if (library.soname != "libcuda.so.1" || !library.loads) continue;
    out += format("libcuda.so.1: {}{}\n", library.path,
                  library.version.empty() ? "" : format(" ({})", library.version));
  }
  if (view.facts.envs.empty()) return out;
  out += format("environment: {}\n", view.facts.envs.front().path);
  return out + libraries_by_folder(view.facts.envs.front());
}

}  // namespace

CollectEnv collect_env(const facts::Facts& facts) { return Collector(facts).collect(); }

std::string collect_env_text(const DoctorView& view) {
  CollectEnv env = collect_env(view.facts);
  std::string out = "Collecting environment information...\n";
  auto line = [&](const char* label, const std::string& value) {
    out += std::string(label) + ": " + value + "\n";
  };
  line("PyTorch version", env.torch_version);
  line("Is debug build", env.is_debug_build);
  line("CUDA used to build PyTorch", env.cuda_compiled_version);
  line("ROCM used to build PyTorch", env.hip_compiled_version);
  out += "\n";
  line("OS", env.os);
  line("GCC version", env.gcc_version);
  line("Clang version", env.clang_version);
  line("CMake version", env.cmake_version);
  line("Libc version", env.libc_version);
  out += "\n";
  line("Python version", env.python_version);
  line("Python platform", env.python_platform);
  line("Is CUDA available", env.is_cuda_available);
  line("CUDA runtime version", env.cuda_runtime_version);
  line("CUDA_MODULE_LOADING set to", env.cuda_module_loading);
  line("GPU models and configuration", env.nvidia_gpu_models);
  line("Nvidia driver version", env.nvidia_driver_version);
  line("cuDNN version", env.cudnn_version);
  line("Is XPU available", env.is_xpu_available);
  line("HIP runtime version", env.hip_runtime_version);
  line("MIOpen runtime version", env.miopen_runtime_version);
  line("Is XNNPACK available", env.is_xnnpack_available);
  line("Caching allocator config", env.caching_allocator_config);
  out += "\nCPU:\n";
  size_t widest = 0;  // as lscpu: one blank behind the longest label
  for (const auto& [label, value] : env.cpu_info) widest = std::max(widest, label.size());
  for (const auto& [label, value] : env.cpu_info)
    out += pad(label + ":", static_cast<int>(widest) + 2) + value + "\n";
  if (env.cpu_info.empty()) out += std::string(k_unknown) + "\n";
  out += "\nVersions of relevant libraries:\n";
  for (const std::string& package : env.pip_packages) out += "[pip3] " + package + "\n";
  if (env.pip_packages.empty()) out += "[pip3] No relevant packages\n";
  for (const std::string& package : env.conda_packages) out += "[conda] " + package + "\n";
  if (env.conda_packages.empty())
    out += std::string("[conda] ") + (env.conda ? "No relevant packages" : k_unknown) + "\n";
  out += "\n" + cufit_section(view);
  return printable(out);
}

}  // namespace cufit::report
