// SPDX-License-Identifier: Apache-2.0
// `cufit fleet plan`: which job on which node and GPU, and how it is asked for there. Starts nothing
// but what a job with `fit = true` is traced with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/fleet/fleet_nodes.h"
#include "fit/pack/pack_plan.h"

namespace cufit::commands {

struct FleetPlanRequest : FleetSource {
  std::vector<std::string> jobs;      // files and sizes; options of srun are none here
  std::optional<std::string> engine;  // else that of the source; of a folder ssh
  pack::Goal goal = pack::Goal::fewest;
  bool mig = false;
  bool json = false;
};

std::span<const Option> fleet_plan_options();
// Exit::k_findings where a job has no place.
int run_fleet_plan(const Context& context, const FleetPlanRequest& request);

}  // namespace cufit::commands
