// SPDX-License-Identifier: Apache-2.0
// What the variables NVIDIA_REQUIRE_* of an image ask of the machine before a container starts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "resolve/wheel/target.h"

namespace cufit::resolve {

// Whether the container runtime starts a container of these variables on that machine, as
// NVIDIA_REQUIRE_* ask ("cuda>=12.6 brand=tesla,driver>=535": a space is "or", a comma "and").
// The variable that forbids it, "NAME=VALUE"; empty = it starts, or a fact is missing.
std::string refused_by_require(const std::vector<std::pair<std::string, std::string>>& variables,
                               const Target& target);

}  // namespace cufit::resolve
