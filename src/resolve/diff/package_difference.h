// SPDX-License-Identifier: Apache-2.0
// Two lists of packages side by side: what came, what went, what changed its version.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/python/pylock.h"
#include "facts/facts.h"

namespace cufit::resolve {

struct PackageVersion {
  std::string name;     // normalised (PEP 503)
  std::string version;  // several copies: "1.26.4, 2.1.0"; conda's build string in brackets
  std::map<std::string, std::string> files;  // of a lock: name -> SHA-256
};

struct PackageChange {
  std::string name, a, b;  // empty = not there
};

// Packages of an environment, sorted by name, each once. Records that pip left behind are no
// packages.
std::vector<PackageVersion> packages_of(const facts::PythonEnv& env);

// Packages of a pylock.toml likewise; what has no version is told by its source.
std::vector<PackageVersion> packages_of(const formats::Pylock& lock);

// Sorted: torch and its companions, NVIDIA's, then the others, each by name. Both lists in any
// order. Of one version with other files behind the same names the change tells the first file's
// sum: "2.8.0 sha256 0f1e2d3c4b5a".
std::vector<PackageChange> compare_packages(const std::vector<PackageVersion>& a,
                                            const std::vector<PackageVersion>& b);

// NVIDIA's own ("nvidia-cudnn-cu12", "cuda-bindings"), and torch with what is built for one torch.
bool is_nvidia_package(const std::string& name);
bool is_torch_package(const std::string& name);

}  // namespace cufit::resolve
