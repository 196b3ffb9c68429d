// SPDX-License-Identifier: Apache-2.0
// `cufit pack`: which jobs go on which GPUs, before anything is started. Starts nothing but what a
// job with `fit = true` is traced with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "fit/pack/pack_plan.h"

namespace cufit::commands {

struct PackRequest {
  std::vector<std::string> jobs;  // files and sizes
  std::vector<std::string> gpus;
  bool mig = false;
  pack::Goal goal = pack::Goal::fewest;
  bool json = false;
};

std::span<const Option> pack_options();
// Exit::k_findings where a job has no place.
int run_pack(const Context& context, const PackRequest& request);

}  // namespace cufit::commands
