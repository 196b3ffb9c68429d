// SPDX-License-Identifier: Apache-2.0
// `cufit fit -- python train.py`: how much memory a training program takes, before it has a GPU.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> fit_options();
int run_fit(const Arguments& arguments);

}  // namespace cufit::commands
