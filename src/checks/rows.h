// SPDX-License-Identifier: Apache-2.0
// Declarations of all checks, one line each, for table.cc and the tests. Alphabetical.
#pragma once

#include "checks/check.h"

namespace cufit::checks {

std::vector<Finding> torch_build(const Input& input);

}  // namespace cufit::checks
