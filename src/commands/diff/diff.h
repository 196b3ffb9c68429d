// SPDX-License-Identifier: Apache-2.0
// `cufit diff A B`: what is different between the machine where it works and the one where it does
// not, the likely culprit first.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> diff_options();
int run_diff(const Arguments& arguments);

}  // namespace cufit::commands
