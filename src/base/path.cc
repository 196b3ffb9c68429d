// SPDX-License-Identifier: Apache-2.0
#include "base/path.h"

#include <filesystem>

namespace cufit {

std::string normal_folder(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().parent_path().string();
}

}  // namespace cufit
