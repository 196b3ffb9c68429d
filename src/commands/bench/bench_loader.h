// SPDX-License-Identifier: Apache-2.0
// `cufit bench loader -- python train.py`: is the device starved, and which DataLoader would feed it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct BenchLoaderRequest {
  std::vector<std::string> command;
  std::optional<std::string> env;      // a folder or a class of a lock
  std::optional<std::string> workers;  // "0,2,4,8"
  std::string time = "60";             // seconds
  bool json = false;
};

std::span<const Option> bench_loader_options();
// k_ok: the device is fed. k_findings: it is not. k_failed: the program never came to a training loop, or ended in it before
// its step and its loader were timed.
int run_bench_loader(const Context& context, const BenchLoaderRequest& request);

}  // namespace cufit::commands
