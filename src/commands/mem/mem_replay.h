// SPDX-License-Identifier: Apache-2.0
// `cufit mem replay`: what other settings, limits and cards would have done to a recorded run.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> mem_replay_options();
int run_mem_replay(const Arguments& arguments);

}  // namespace cufit::commands
