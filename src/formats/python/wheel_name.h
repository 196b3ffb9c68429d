// SPDX-License-Identifier: Apache-2.0
// The name of a wheel (PEP 427): name-version[-build]-python-abi-platform.whl, tags compressed by
// dots ("py2.py3"), and behind them the label of a wheel variant (wheel_variants.h). Says whether an installer for CPython on Linux may take it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"

namespace cufit::formats {

struct WheelName {
  std::string name;     // normalised: "nvidia-cublas-cu12"
  std::string version;  // "2.7.1+cu126"
  std::string build;    // usually empty
  std::string variant;  // "cu129"; empty: an ordinary wheel
  std::vector<std::string> pythons, abis, platforms;
};
// nullopt: no wheel's name. "%2B" is read as "+".
std::optional<WheelName> parse_wheel_name(std::string_view file_name);

// `python` "3.11" or "3.13t", `machine` "x86_64", `glibc` the newest that the target has.
bool fits(const WheelName& wheel, const std::string& python, const std::string& machine,
          const Version& glibc);

}  // namespace cufit::formats
