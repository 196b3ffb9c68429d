// SPDX-License-Identifier: Apache-2.0
// `cufit preflight`: will the environment about to be used run here? An exit code and one line, for
// launch scripts.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> preflight_options();
int run_preflight(const Arguments& arguments);

}  // namespace cufit::commands
