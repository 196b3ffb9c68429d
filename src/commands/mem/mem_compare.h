// SPDX-License-Identifier: Apache-2.0
// `cufit mem compare`: two recorded runs side by side.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct MemCompareRequest {
  std::string a, b;  // snapshots
  std::optional<std::string> device, torch;
  bool json = false, verbose = false;
};

std::span<const Option> mem_compare_options();
int run_mem_compare(const Context& context, const MemCompareRequest& request);

}  // namespace cufit::commands
