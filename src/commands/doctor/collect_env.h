// SPDX-License-Identifier: Apache-2.0
// `cufit collect-env`: the text that issue templates ask for, also where `import torch` is broken.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct CollectEnvRequest {
  std::optional<std::string> env;   // a folder
  std::optional<std::string> from;  // a recording instead of this machine
  bool json = false;
};

std::span<const Option> collect_env_options();
int run_collect_env(const Context& context, const CollectEnvRequest& request);

}  // namespace cufit::commands
