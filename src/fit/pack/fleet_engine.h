// SPDX-License-Identifier: Apache-2.0
// What a scheduler can be asked for: by ssh any memory of a GPU, in Slurm a whole GPU or shards of
// one, in Kubernetes a whole GPU or a MIG instance.
#pragma once

#include <string>
#include <vector>

#include "fit/pack/fleet_jobs.h"
#include "fit/pack/fleet_plan.h"
#include "formats/system/slurm_nodes.h"

namespace cufit::pack {

enum class Engine { ssh, slurm, kubernetes };

struct SlurmCluster {
  std::vector<formats::SlurmNodeGres> nodes;
  std::vector<formats::SlurmPartition> partitions;  // empty: they are not known
};

// Marks GPUs that are given as a whole or in shards, and takes away what Slurm does not have of them
// or has given to jobs: of each type so many, those with most memory in use first. A job of several
// GPUs gets whole ones in Slurm.
void offer_by(Engine engine, const SlurmCluster& slurm, FleetQuestion& question);

// Machines to which Slurm gives no job, drained ones and the like, as `why` says.
std::vector<MachineOut> take_out_by_slurm(const SlurmCluster& slurm,
                                          std::vector<Machine>& machines);

// Slurm's name of the GPU's model: the only one of the machine, or that which the GPU's name or its
// MIG profile holds; empty: none is sure.
std::string slurm_type(const Machine& machine, const Gpu& gpu);
// Shards that hold the bytes; 0: they are asked for as whole GPUs.
uint64_t shards_for(const Machine& machine, const Gpu& gpu, uint64_t bytes);

}  // namespace cufit::pack
