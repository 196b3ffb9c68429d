// SPDX-License-Identifier: Apache-2.0
// `cufit run`: the environment of a cufit.lock that fits the GPUs which this process sees, and the
// user's program in it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/run/run_vram.h"

namespace cufit::commands {

struct RunRequest {
  std::vector<std::string> command;
  std::string env;  // a class of the lock; empty: the one that fits
  std::optional<std::string> lock, policy;
  std::optional<std::string> vram, share, spill;  // a limit of GPU memory (run_vram.h)
  std::optional<VramHolder> by;
  bool wait = false;  // for room on a GPU (run_wait.h)
  std::optional<std::string> gpus, timeout;
  bool supervise = false;
  std::optional<std::string> report;  // of --supervise
  bool quiet = false;
};

std::span<const Option> run_options();
int run_run(const Context& context, const RunRequest& request);

}  // namespace cufit::commands
