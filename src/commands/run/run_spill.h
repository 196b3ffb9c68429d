// SPDX-License-Identifier: Apache-2.0
// `cufit run --spill`: what does not fit beside the limit lies in host memory. The guard maps it (guard/spill.h); for
// optimizers a script in the program's Python asks for it (python/cufit_spill).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "commands/context.h"
#include "facts/facts.h"
#include "resolve/quota/spill_size.h"

namespace cufit::commands {

struct SpillPlace {
  std::string quota_folder;
  std::string guard;  // path of its library
};

// Makes the script's file and changes `variables` ("NAME=value"). Says the expected cost unless `quiet`.
// Error{io}: no folder will hold the script.
Result<void> set_spill(const Context& context, const resolve::SpillRequest& request,
                       const SpillPlace& place, const facts::Facts& facts, bool quiet,
                       std::vector<std::string>& variables);

}  // namespace cufit::commands
