// SPDX-License-Identifier: Apache-2.0
// `cufit preflight`: will the environment about to be used run here? An exit code and one line, for
// launch scripts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct PreflightRequest {
  std::optional<std::string> env;  // a folder, or a class of the lock
  std::optional<std::string> lock, policy;
  bool json = false;
  bool machine = false;  // the machine alone
  bool quiet = false;
};

std::span<const Option> preflight_options();
int run_preflight(const Context& context, const PreflightRequest& request);

}  // namespace cufit::commands
