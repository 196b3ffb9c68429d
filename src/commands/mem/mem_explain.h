// SPDX-License-Identifier: Apache-2.0
// `cufit mem explain`: what held the memory of a recorded run, why it ran out, what would help.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/mem/mem_snapshot.h"

namespace cufit::commands {

struct MemExplainRequest : SnapshotRequest {
  std::optional<std::string> limit;  // a size
  bool json = false, verbose = false;
};

std::span<const Option> mem_explain_options();
int run_mem_explain(const Context& context, const MemExplainRequest& request);

}  // namespace cufit::commands
