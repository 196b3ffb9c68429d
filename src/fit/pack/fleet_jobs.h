// SPDX-License-Identifier: Apache-2.0
// For each job the machines that can take it now, and what the others lack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fit/pack/fleet_plan.h"

namespace cufit::pack {

struct JobCannot {
  enum class Why { out, no_gpu, too_small, too_few, given_away, instances };
  std::vector<std::string> nodes;
  Why why = Why::out;
  std::string out_as, detail;              // out: as of MachineOut
  std::string gpu;                         // the model that comes nearest
  uint64_t needs = 0;                      // bytes of one GPU
  uint64_t least = 0, most = 0;            // that these nodes have on the nearest one
  uint32_t gpus = 0;                       // asked for
  uint32_t least_good = 0, most_good = 0;  // that hold it
};

struct JobNodes {
  std::string name;
  std::vector<std::string> nodes;
  std::vector<JobCannot> cannot;  // alike ones together, the most nodes first
};

// A machine that takes no job at all.
struct MachineOut {
  std::string name;
  std::string as;   // "broken", "unknown", "silent"
  std::string why;  // English, as it was told
};

JobNodes nodes_for_job(const Job& job, const std::vector<Machine>& machines,
                       const std::vector<MachineOut>& out);

}  // namespace cufit::pack
