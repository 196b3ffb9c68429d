// SPDX-License-Identifier: Apache-2.0
// Which platform's wheels an environment takes. Only on Linux does the default Python index hold
// CUDA builds of torch: for Windows it has the CPU build alone, so there, and where nothing tells
// the platform, a command names PyTorch's own index.
#pragma once

#include <string>
#include <string_view>

#include "facts/facts.h"

namespace cufit::checks {

// unknown: a text that does not say where it comes from.
enum class WheelPlatform { linux_x86_64, linux_aarch64, windows, mac, unknown };

WheelPlatform wheel_platform(const facts::Facts& facts);
// As data/wheels.toml calls it; what is unknown is judged as Linux on x86-64.
std::string_view platform_name(WheelPlatform platform);

}  // namespace cufit::checks
