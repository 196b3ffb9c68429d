// SPDX-License-Identifier: Apache-2.0
// `cufit mem replay`: what other settings, limits and cards would have done to a recorded run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/mem/mem_snapshot.h"

namespace cufit::commands {

struct MemReplayRequest : SnapshotRequest {
  std::vector<std::string> settings;  // each in PyTorch's form
  bool all = false;                   // the usual settings, too
  std::optional<std::string> limit, gpu;
  bool json = false, verbose = false;
};

std::span<const Option> mem_replay_options();
int run_mem_replay(const Context& context, const MemReplayRequest& request);

}  // namespace cufit::commands
