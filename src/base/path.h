// SPDX-License-Identifier: Apache-2.0
// Paths as text; nothing is looked up.
#pragma once

#include <string_view>

namespace cufit {

// What stands behind the last slash: "libcudart.so.12" of "/usr/lib/libcudart.so.12".
inline std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace cufit
