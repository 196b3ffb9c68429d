// SPDX-License-Identifier: Apache-2.0
// Installed distributions of one environment from their metadata folders and conda records, and
// which shared objects belong to which. Used by host/python/python_envs. It counts files that
// RECORD promises and the disk does not have, or has in another size: the code of torch, of what
// importing it needs and of packages with compiled parts, or every file of all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/python/marker.h"
#include "facts/facts.h"
#include "host/files/host.h"
#include "host/python/python_prefix.h"

namespace cufit::host {

struct SharedObject {
  std::string path;   // absolute
  std::string owner;  // normalised name of the distribution; empty = none claims it
};

struct InstalledPackages {
  std::vector<facts::Distribution> distributions;  // sorted by name, then location
  std::vector<SharedObject> objects;               // sorted by path, each once
  std::vector<std::string> problems;
};

InstalledPackages read_distributions(const Host& host, const PythonPrefix& prefix,
                                     const formats::MarkerEnvironment& environment,
                                     bool every_file = false);

// A wheel that only carries NVIDIA's libraries ("nvidia-cublas", "nvidia-nccl-cu13").
bool is_nvidia_library_package(const std::string& normalized_name);

}  // namespace cufit::host
