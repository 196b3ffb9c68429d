// SPDX-License-Identifier: Apache-2.0
// Questions that many checks ask of a Python environment and of the user-mode driver: which CUDA
// this torch was built with, which binaries are torch's own, which libcuda would load. Answers
// only; no findings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "checks/check.h"

namespace cufit::checks {

bool has_torch(const facts::PythonEnv& env);
// Environments in which torch lies (any build).
std::vector<const facts::PythonEnv*> torch_envs(const facts::Facts& facts);
// The one that decides the verdict: the active one if it holds torch, else the only one that does;
// where none does, the project's own before a system's Python in PATH, the active one, or the only one. null = several and none of them active, or no
// environment at all.
const facts::PythonEnv* main_env(const facts::Facts& facts);

// What torch was built with. "cuda" also when only the tag or the libraries say so; "" = nothing
// tells.
struct TorchBuild {
  std::string kind;             // "cuda", "cpu", "rocm", "xpu", ""
  std::optional<Version> cuda;  // 13.0; only the major where nothing but a library name is known
  bool cuda_exact = false;      // minor known
  std::string tag;              // "cu130"; empty = not known
  std::string release;          // "2.11.0"
  Source source;
};
TorchBuild torch_build_of(const Input& input, const facts::PythonEnv& env);

bool is_torch_binary(const facts::PythonEnv& env, const facts::Binary& binary);
// The library whose code decides: libtorch_cuda.so, or the pair of split builds; null = none found.
const facts::Binary* torch_main_library(const facts::PythonEnv& env);
// The one that Python finds first, where several folders of its path have the package.
const facts::Distribution* find_distribution(const facts::PythonEnv& env, std::string_view name);
// The folder of PYTHONPATH from which this environment's torch comes; empty: not from one.
std::string folder_on_python_path(const facts::Facts& facts,
                                  const facts::PythonEnv& env);  // python_base.cc
// Index of its folder in site_packages, which is sys.path's order; their number: in none of them.
size_t place_on_path(const facts::PythonEnv& env, const facts::Distribution& distribution);
// "nvidia-cudnn-cu13" brings "libcudnn_graph.so.9".
bool brings_library(std::string_view package, std::string_view library);

const facts::DriverLibrary* loaded_driver_library(const facts::Facts& facts,
                                                  std::string_view soname);
const facts::DriverLibrary* active_compat(
    const Input& input);  // libcuda of cuda-compat that would load
// Forward compatibility: the driver's branch is listed and every GPU is of a data-centre kind (or
// Jetson). Unknown counts as no.
bool may_use_compat(const Input& input, const facts::DriverLibrary& compat);
enum class CompatGpu { eligible, not_eligible, unknown };
CompatGpu compat_gpu(const GpuView& gpu);
struct CompatCandidate {
  CompatGpu kind = CompatGpu::unknown;
  std::optional<ComputeCapability> cc;
};
// Whether the cuda-compat package of this CUDA's minor would lift this driver, by the tables: every
// GPU may have it, the newer driver it stands for still drives each, and it lists the branch.
bool forward_compat_helps(const std::vector<CompatCandidate>& gpus, const Version& driver,
                          const Version& cuda, const knowledge::Knowledge& knowledge);

std::string variable(const facts::Facts& facts, std::string_view name);  // empty = not set
bool has_variable(const facts::Facts& facts, std::string_view name);
bool in_container(const facts::Facts& facts);
bool is_wsl(const facts::Facts& facts);
bool is_jetson(const facts::Facts& facts);
// torch 2.3 is the first release built to work with NumPy 2 (Linux); see torch_releases in
// data/wheels.toml. An older one runs, but cannot exchange tensors with NumPy 2.
bool takes_numpy2(const Version& torch);
// As NVIDIA writes driver numbers: the third part has two digits, "450.80.02", but one in Jetson's
// series, "540.4.0".
std::string driver_text(const Version& driver);
// A branch alone ("--driver 525") means its newest release.
bool at_least(const Version& driver, const Version& floor);

}  // namespace cufit::checks
