// SPDX-License-Identifier: Apache-2.0
#include "checks/wheel_platform.h"

#include "base/format.h"

namespace cufit::checks {

WheelPlatform wheel_platform(const facts::Facts& facts) {
  const facts::SystemFacts& system = facts.system;
  const std::string os = lower(system.distribution.value_or(""));
  const bool linux_around = system.wsl || system.jetson;
  if (!linux_around && contains(os, "windows")) return WheelPlatform::windows;
  if (!linux_around && (contains(os, "macos") || contains(os, "mac os"))) return WheelPlatform::mac;
  // cufit itself runs on Linux alone; only what others wrote can be about another system.
  const bool told = facts.origin == "text" || facts.origin == "dump";
  if (told && !linux_around && os.empty() && !system.kernel && !system.glibc)
    return WheelPlatform::unknown;
  const std::string machine = system.architecture.value_or("x86_64");
  return machine == "aarch64" ? WheelPlatform::linux_aarch64 : WheelPlatform::linux_x86_64;
}

std::string_view platform_name(WheelPlatform platform) {
  switch (platform) {
    case WheelPlatform::windows:
      return "windows_amd64";
    case WheelPlatform::linux_aarch64:
      return "linux_aarch64";
    default:
      return "linux_x86_64";
  }
}

}  // namespace cufit::checks
