// SPDX-License-Identifier: Apache-2.0
// `cufit collect-env`: the text that issue templates ask for, also where `import torch` is broken.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> collect_env_options();
int run_collect_env(const Arguments& arguments);

}  // namespace cufit::commands
