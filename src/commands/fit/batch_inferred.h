// SPDX-License-Identifier: Apache-2.0
// Which option of a command is its batch size, by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/fit/batch_argument.h"
#include "host/files/host.h"

namespace cufit::commands {

struct InferredBatch {
  BatchArgument argument;
  uint64_t batch = 0;                // the number that it has
  std::string file;                  // where; empty: in the command
  std::vector<std::string> command;  // into which another is written
};

// A guess: whoever uses it has to see that the traces follow it. Nullopt where no option of the
// command (or key of a file that it names) is called so, and where several are.
std::optional<InferredBatch> inferred_batch(const host::Host& files,
                                            const std::vector<std::string>& command);

}  // namespace cufit::commands
