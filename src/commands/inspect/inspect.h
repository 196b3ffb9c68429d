// SPDX-License-Identifier: Apache-2.0
// `cufit inspect`: which device code, libraries and ABI are inside files, wheels and directories,
// and do they fit a GPU?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct InspectRequest {
  std::vector<std::string> paths;  // files, wheels, folders
  std::vector<std::string> gpus;   // to judge them for
  std::optional<std::string> driver;
  bool json = false, verbose = false;
};

std::span<const Option> inspect_options();
int run_inspect(const Context& context, const InspectRequest& request);

}  // namespace cufit::commands
