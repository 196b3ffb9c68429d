// SPDX-License-Identifier: Apache-2.0
// `cufit inspect`: which device code, libraries and ABI are inside files, wheels and directories,
// and do they fit a GPU?
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> inspect_options();
int run_inspect(const Arguments& arguments);

}  // namespace cufit::commands
