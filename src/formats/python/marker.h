// SPDX-License-Identifier: Apache-2.0
// Requirement lines of Python packages (PEP 508): `name[extra]>=1; marker`. Used to keep those that
// apply here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cufit::formats {

struct MarkerEnvironment {
  std::string python_version;    // "3.12"; empty = unknown
  std::string platform_machine;  // "x86_64"
  // "3.12.3"; empty: python_version stands for it
  std::string python_full_version = {};
  std::string extra = {};  // that somebody asks for: "cublas" of "cuda-toolkit[cublas]"
};

// The requirement without its marker when it applies on Linux with CPython and with this extra (or
// none); nullopt otherwise. A marker that cannot be decided (unknown variable, bad syntax, Python unknown)
// counts as true.
std::optional<std::string> requirement_that_applies(std::string_view line,
                                                    const MarkerEnvironment& environment);

}  // namespace cufit::formats
