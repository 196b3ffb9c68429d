// SPDX-License-Identifier: Apache-2.0
// `cufit mem compare`: two recorded runs side by side.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> mem_compare_options();
int run_mem_compare(const Arguments& arguments);

}  // namespace cufit::commands
