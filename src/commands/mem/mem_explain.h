// SPDX-License-Identifier: Apache-2.0
// `cufit mem explain`: what held the memory of a recorded run, why it ran out, what would help.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> mem_explain_options();
int run_mem_explain(const Arguments& arguments);

}  // namespace cufit::commands
