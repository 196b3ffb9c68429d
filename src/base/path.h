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

// What `path` means in `folder`: itself where it begins at the root.
std::string path_in(const std::string& folder, const std::string& path);
// What stands before the last slash: "a" of "a/b", nothing of "b".
std::string parent_folder(const std::string& path);
// With "x/.." and "." worked out by name: "a/c" of "a/./b/../c".
std::string normal_path(const std::string& path);

// The folder of a path with "x/.." and "." worked out: "/usr/lib" of "/usr/share/../lib/libz.so.1".
std::string normal_folder(const std::string& path);

}  // namespace cufit
