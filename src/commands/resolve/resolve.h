// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> resolve_options();
int run_resolve(const Arguments& arguments);

}  // namespace cufit::commands
