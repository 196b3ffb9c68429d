// SPDX-License-Identifier: Apache-2.0
// Paths as text; nothing is looked up.
#pragma once

#include <string>
#include <string_view>

namespace cufit {

// What stands behind the last slash: "libcudart.so.12" of "/usr/lib/libcudart.so.12".
inline std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The folder of a path with "x/.." and "." worked out: "/usr/lib" of "/usr/share/../lib/libz.so.1".
std::string normal_folder(const std::string& path);

}  // namespace cufit
