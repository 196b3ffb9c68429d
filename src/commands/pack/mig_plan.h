// SPDX-License-Identifier: Apache-2.0
// `cufit mig plan`: how one GPU is divided for some jobs. Divides nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct MigPlanRequest {
  std::optional<std::string> gpu;
  std::vector<std::string> jobs;  // sizes; none: what the GPU can be divided into
  bool json = false, verbose = false;
};

std::span<const Option> mig_plan_options();
// Exit::k_findings where a job has no instance.
int run_mig_plan(const Context& context, const MigPlanRequest& request);

}  // namespace cufit::commands
