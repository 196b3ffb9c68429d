// SPDX-License-Identifier: Apache-2.0
// `cufit diff A B`: what is different between the machine where it works and the one where it does
// not, the likely culprit first.
#pragma once

#include <span>
#include <string>

#include "commands/command.h"

namespace cufit::commands {

// What is compared: "here", a recording or another file of facts, an environment, a lock, a pylock.
struct DiffRequest {
  std::string a, b;
  bool json = false;
  bool verbose = false;
};

std::span<const Option> diff_options();
int run_diff(const Context& context, const DiffRequest& request);

}  // namespace cufit::commands
