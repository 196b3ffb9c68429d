// SPDX-License-Identifier: Apache-2.0
// `cufit mem view`: a recorded run as an interactive page in one file.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> mem_view_options();
int run_mem_view(const Arguments& arguments);

}  // namespace cufit::commands
