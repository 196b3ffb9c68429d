// SPDX-License-Identifier: Apache-2.0
#include "formats/system/nvidia_version.h"

#include "base/format.h"

namespace cufit::formats {

bool is_driver_version(std::string_view text) {
  std::vector<std::string_view> groups = split(text, '.');
  if (groups.size() < 2 || groups.size() > 4) return false;
  for (std::string_view group : groups) {
    if (group.empty() || group.size() > 5) return false;
    for (char c : group) {
      if (c < '0' || c > '9') return false;
    }
  }
  return true;
}

std::optional<NvidiaModule> parse_nvidia_version(std::string_view text) {
  for (std::string_view line : split_lines(text)) {
    size_t module = line.find("Kernel Module");
    if (!starts_with(trim(line), "NVRM version:") || module == std::string_view::npos) continue;
    bool is_open = ends_with(trim(line.substr(0, module)), " Open");
    for (std::string_view word : split(line.substr(module), ' ')) {
      if (is_driver_version(trim(word))) {
        return NvidiaModule{std::string(trim(word)), is_open ? "open" : "proprietary"};
      }
    }
  }
  return std::nullopt;
}

}  // namespace cufit::formats
