// SPDX-License-Identifier: Apache-2.0
// /etc/os-release: shell-like assignments (os-release(5)). Used by the system probe; reads three of
// its variables.
#pragma once

#include <string>
#include <string_view>

namespace cufit::formats {

struct OsRelease {
  std::string id;           // "debian"; empty = not said
  std::string version_id;   // "12"; rolling distributions have none
  std::string pretty_name;  // "Debian GNU/Linux 12 (bookworm)"
};

OsRelease parse_os_release(std::string_view text);

}  // namespace cufit::formats
