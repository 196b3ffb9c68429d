// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fleet plan` and its views.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fit/pack/fleet_engine.h"
#include "fit/pack/fleet_jobs.h"
#include "report/report.h"

namespace cufit::report {

struct FleetPlanView {
  const pack::FleetQuestion& question;
  const pack::FleetPlan& plan;
  pack::Engine engine = pack::Engine::ssh;
  const std::vector<pack::MachineOut>& out;  // take no job
  std::vector<pack::JobNodes> unplaced;      // of each job without a place, in their order
  const knowledge::Knowledge& knowledge;
};

// How one job is asked for in the engine.
struct FleetAsk {
  // To be copied; every word is quoted for a POSIX shell. Kubernetes: lines of a pod's YAML.
  std::vector<std::string> lines;
  std::string gres;    // Slurm's: "gpu:h200:1", "shard:12"
  std::string limit;   // Kubernetes' resource
  uint64_t count = 0;  // of it
};
// `program` stands where the command is not known.
FleetAsk ask_for(const FleetPlanView& view, const pack::FleetPlaced& placed,
                 const std::string& program);

std::string fleet_plan_text(const FleetPlanView& view, const Style& style);
std::string fleet_plan_json(const FleetPlanView& view);  // schema cufit.fleet.plan/1

}  // namespace cufit::report
