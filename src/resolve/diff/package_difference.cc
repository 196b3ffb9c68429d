// SPDX-License-Identifier: Apache-2.0
#include "resolve/diff/package_difference.h"

#include <algorithm>
#include <map>

#include "base/format.h"

namespace cufit::resolve {
namespace {

// The first file that both locks name, with another sum; files that only one lists came or went
// with the index.
void tell_other_files(const PackageVersion& a, const PackageVersion& b, PackageChange& change) {
  constexpr size_t k_shown = 12;  // hexadecimal digits
  if (change.a != change.b) return;
  for (const auto& [name, sum] : a.files) {
    const auto other = b.files.find(name);
    if (other == b.files.end() || other->second == sum) continue;
    change.a += " sha256 " + sum.substr(0, k_shown);
    change.b += " sha256 " + other->second.substr(0, k_shown);
    return;
  }
}

int group_of(const std::string& name) {
  return is_torch_package(name) ? 0 : is_nvidia_package(name) ? 1 : 2;
}

}  // namespace

bool is_torch_package(const std::string& name) {
  static const char* const k_names[] = {
      "torch",         "pytorch",       "torchvision",       "torchaudio",
      "triton",        "xformers",      "flash-attn",        "bitsandbytes",
      "deepspeed",     "torchao",       "flashinfer-python", "vllm",
      "sageattention", "pytorch-triton"};
  return std::find(std::begin(k_names), std::end(k_names), name) != std::end(k_names);
}

bool is_nvidia_package(const std::string& name) {
  return starts_with(name, "nvidia-") || starts_with(name, "cuda-") || name == "cudnn" ||
         name == "cudatoolkit" || name == "pytorch-cuda" || starts_with(name, "libcu") ||
         name == "nccl";
}

std::vector<PackageVersion> packages_of(const facts::PythonEnv& env) {
  std::map<std::string, std::vector<std::string>> found;
  if (env.distributions) {
    for (const facts::Distribution& one : *env.distributions) {
      if (one.kind == "leftover") continue;
      std::string version = one.version.empty() ? "?" : one.version;
      if (one.kind == "conda-meta" && !one.tag.empty()) version += " (" + one.tag + ")";
      std::vector<std::string>& versions = found[one.name];
      if (std::find(versions.begin(), versions.end(), version) == versions.end())
        versions.push_back(version);
    }
  }
  std::vector<PackageVersion> out;
  for (auto& [name, versions] : found) {
    // What pip sees of a conda package says less than conda's own record.
    if (versions.size() == 2)
      for (const size_t i : {0, 1})
        if (starts_with(versions[i], versions[1 - i] + " (")) {
          versions = {versions[i]};
          break;
        }
    out.push_back({name, join(versions, ", "), {}});
  }
  return out;
}

std::vector<PackageVersion> packages_of(const formats::Pylock& lock) {
  std::map<std::string, std::vector<std::string>> found;
  std::map<std::string, std::map<std::string, std::string>> files;
  const auto note = [](const formats::PylockFile& file, std::map<std::string, std::string>& to) {
    for (const auto& [kind, sum] : file.hashes)
      if (kind == "sha256" && !file.name.empty()) to[file.name] = sum;
  };
  for (const formats::PylockPackage& one : lock.packages) {
    for (const formats::PylockFile& wheel : one.wheels) note(wheel, files[one.name]);
    for (const auto* file : {&one.sdist, &one.archive})
      if (*file) note(**file, files[one.name]);
    std::string version = one.version;
    if (version.empty()) version = one.vcs.empty() ? one.directory : one.vcs;
    if (version.empty()) version.assign(1, '?');  // = "?" makes g++ 12 warn
    std::vector<std::string>& versions = found[one.name];
    if (std::find(versions.begin(), versions.end(), version) == versions.end())
      versions.push_back(std::move(version));
  }
  std::vector<PackageVersion> out;
  for (const auto& [name, versions] : found)
    out.push_back({name, join(versions, ", "), std::move(files[name])});
  return out;
}

std::vector<PackageChange> compare_packages(const std::vector<PackageVersion>& a,
                                            const std::vector<PackageVersion>& b) {
  std::map<std::string, PackageChange> all;
  std::map<std::string, const PackageVersion*> left;
  for (const PackageVersion& one : a) {
    all[one.name].a = one.version;
    left[one.name] = &one;
  }
  for (const PackageVersion& one : b) {
    PackageChange& change = all[one.name];
    change.b = one.version;
    if (const auto there = left.find(one.name); there != left.end())
      tell_other_files(*there->second, one, change);
  }
  std::vector<PackageChange> out;
  for (auto& [name, change] : all) {
    if (change.a == change.b) continue;
    change.name = name;
    out.push_back(std::move(change));
  }
  std::stable_sort(out.begin(), out.end(), [](const PackageChange& x, const PackageChange& y) {
    return group_of(x.name) < group_of(y.name);
  });
  return out;
}

}  // namespace cufit::resolve
