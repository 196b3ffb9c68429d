// SPDX-License-Identifier: Apache-2.0
// `cufit run`: the environment of a cufit.lock that fits the GPUs which this process sees, and the
// user's program in it.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> run_options();
int run_run(const Arguments& arguments);

}  // namespace cufit::commands
