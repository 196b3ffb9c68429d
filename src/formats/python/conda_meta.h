// SPDX-License-Identifier: Apache-2.0
// Records of conda packages, `conda-meta/<name>-<version>-<build>.json`. Used by
// host/python/python_envs. The file name alone tells name, version and build; an environment has
// hundreds of these files with long lists, so only those of packages that matter are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct CondaName {
  std::string name, version, build;
};
std::optional<CondaName> parse_conda_file_name(std::string_view file_name);

struct CondaRecord {
  std::string name, version, build, channel;
  std::vector<std::string> depends;
  std::vector<std::string> shared_objects;  // of `files`, relative to the prefix
  std::vector<std::string> packages;        // "lib/python3.12/site-packages/torch/__init__.py"
};
Result<CondaRecord> parse_conda_record(std::string_view json);

}  // namespace cufit::formats
