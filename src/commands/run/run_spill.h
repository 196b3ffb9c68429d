// SPDX-License-Identifier: Apache-2.0
// `cufit run --spill`: what does not fit beside the limit lies in host memory. The guard maps it (guard/spill.h); for
// optimizers a script in the program's Python asks for it (python/cufit_spill).
#pragma once

#include <string>
#include <vector>

#include "commands/context.h"
#include "resolve/quota/spill_size.h"

namespace cufit::commands {

struct SpillWish {
  resolve::SpillRequest request;
  std::string guard;       // path of its library
  std::string script;      // folder of the script for Python
  uint64_t link_rate = 0;  // bytes a second; 0 = not known
  bool quiet = false;
  const std::vector<std::string>& command;
};

// Says the expected cost, and changes `variables` ("NAME=value").
void set_spill(const Context& context, const SpillWish& wish, std::vector<std::string>& variables);

}  // namespace cufit::commands
