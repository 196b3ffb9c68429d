// SPDX-License-Identifier: Apache-2.0
#include "base/path.h"

#include <filesystem>

namespace cufit {

namespace fs = std::filesystem;

std::string path_in(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).string();
}

std::string parent_folder(const std::string& path) { return fs::path(path).parent_path().string(); }

std::string normal_path(const std::string& path) {
  return fs::path(path).lexically_normal().string();
}

std::string normal_folder(const std::string& path) { return parent_folder(normal_path(path)); }

}  // namespace cufit
