// SPDX-License-Identifier: Apache-2.0
// /proc/driver/nvidia/version: the loaded NVIDIA kernel module's own line. Used by the kernel probe
// and by the dump reader. Two forms:
//   NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
//   NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (user@)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cufit::formats {

struct NvidiaModule {
  std::string version;  // "535.183.01"
  std::string flavour;  // "open" or "proprietary"
};

// nullopt when no line has the form.
std::optional<NvidiaModule> parse_nvidia_version(std::string_view text);

// "535.183.01": digits in two to four groups; nothing else is taken as a driver's version.
bool is_driver_version(std::string_view text);

}  // namespace cufit::formats
