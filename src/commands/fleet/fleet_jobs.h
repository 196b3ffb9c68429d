// SPDX-License-Identifier: Apache-2.0
// Nodes as machines that jobs may go to, and those that take none.
#pragma once

#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/fleet/node_answer.h"
#include "fit/pack/fleet_jobs.h"

namespace cufit::commands {

struct JobMachines {
  std::vector<pack::Machine> machines;
  std::vector<pack::MachineOut> out;  // not usable, could not be told, did not answer
};
JobMachines job_machines(const NodeAnswers& nodes);

// `inputs`: as `cufit pack` takes them. What a command with `fit = true` is traced for: one GPU of
// each model.
Result<std::vector<pack::Job>> fleet_jobs(const Context& context,
                                          const std::vector<std::string>& inputs,
                                          const std::vector<pack::Machine>& machines);

// Empty without `inputs`.
Result<std::vector<pack::JobNodes>> nodes_for_jobs(const Context& context,
                                                   const std::vector<std::string>& inputs,
                                                   const NodeAnswers& nodes);

}  // namespace cufit::commands
