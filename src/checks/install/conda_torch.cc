// SPDX-License-Identifier: Apache-2.0
#include "checks/install/conda_torch.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"

namespace cufit::checks {
namespace {

constexpr std::string_view k_torch[] = {"pytorch", "pytorch-cpu", "pytorch-gpu", "libtorch",
                                        "torch"};
constexpr std::string_view k_along[] = {"cpuonly",    "pytorch-cuda", "pytorch-mutex",
                                        "torchaudio", "torchtriton",  "torchvision"};

template <size_t n>
bool is_one_of(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string prefix_of(const facts::PythonEnv& env) {
  // "(claimed)": a text that names no path; whoever reads the command has activated it.
  return starts_with(env.path, "(") ? "" : " -p " + shell_word(env.path);
}

}  // namespace

std::vector<std::string> conda_torch_packages(const facts::PythonEnv& env) {
  std::vector<std::string> names;
  if (!env.distributions || (env.installer != "conda" && env.installer != "pixi")) return names;
  bool torch = false;
  for (const facts::Distribution& one : *env.distributions) {
    const bool record = one.kind == "conda-meta";
    const bool of_conda = record || one.installer == "conda" || one.installer == "pixi";
    // A wheel's own torch beside it: torch_install.cc's matter.
    if (one.name == "torch" && !of_conda && !starts_with(env.path, "(")) return {};
    if (!record || (!is_one_of(k_torch, one.name) && !is_one_of(k_along, one.name))) continue;
    torch = torch || is_one_of(k_torch, one.name);
    names.push_back(one.name == "torch" ? "pytorch" : one.name);
  }
  if (!torch) names.clear();
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string conda_torch_removal(const facts::PythonEnv& env) {
  const std::vector<std::string> names = conda_torch_packages(env);
  if (names.empty()) return {};
  return "conda remove -y" + prefix_of(env) + " " + join(names, " ") + " && ";
}

std::string conda_torch_repair(const facts::PythonEnv& env) {
  for (const facts::Distribution& one : *env.distributions) {
    if (one.kind != "conda-meta" || (one.name != "pytorch" && one.name != "torch")) continue;
    // "py3.11_cuda12.1_cudnn8.9.2_0": of the project's own channel.
    const std::string channel = starts_with(one.tag, "py3.") ? "pytorch -c nvidia" : "conda-forge";
    return "conda install --force-reinstall" + prefix_of(env) + " -c " + channel + " " +
           shell_word("pytorch=" + one.version);
  }
  return {};
}

}  // namespace cufit::checks
