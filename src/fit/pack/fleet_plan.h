// SPDX-License-Identifier: Apache-2.0
// Who goes where on many machines: jobs that may ask for several GPUs of one, the machines' GPUs, an
// assignment and what was proved of it. No card is given more than it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fit/pack/pack_plan.h"

namespace cufit::pack {

inline constexpr size_t k_most_fleet_jobs = 4096, k_most_fleet_gpus = 16384;

struct Machine {
  std::string name;
  std::vector<Gpu> gpus;           // that jobs may have
  uint64_t shards = 0;             // Slurm's, of each GPU; 0: it has none
  std::vector<std::string> types;  // Slurm's names of its GPUs
  uint64_t given_away = 0;         // GPUs that the scheduler gave to jobs: not among `gpus`
  std::string partitions;          // Slurm's, "a,b"; empty: the default one has the machine
};

struct FleetQuestion {
  std::vector<Job> jobs;
  std::vector<Machine> machines;
  Goal goal = Goal::fewest;
  bool divide = false;
};

struct FleetPlaced {
  size_t job = 0, machine = 0;
  std::vector<size_t> gpus;   // of the machine
  std::vector<PlacedJob> on;  // on each of them; `job` of these is a part of `parts`
  uint64_t bytes = 0;         // of each of its GPUs, the largest
};

struct FleetPlan {
  Question parts;                   // one job for each GPU that is asked for, all machines' GPUs
  Plan plan;                        // of these
  std::vector<FleetPlaced> placed;  // by machine, then by job
  std::vector<size_t> unplaced;     // jobs
  std::vector<size_t> first_gpu;    // of each machine, among those of `parts`
  Goal goal = Goal::fewest;
  size_t used = 0;  // GPUs
  bool optimal = false;
  size_t most_placed = 0, fewest_used = 0;
  uint64_t headroom = 0, most_headroom = 0;
};

// Error{usage} for more jobs or GPUs than k_most_fleet_jobs, k_most_fleet_gpus.
Result<FleetPlan> make_fleet_plan(const FleetQuestion& question,
                                  const knowledge::Knowledge& knowledge);

// Whether a machine could take the job with nothing else of the plan on it, and what it lacks.
struct MachineFit {
  bool fits = false;
  uint64_t needs = 0, has = 0;  // bytes of a GPU, of that which comes nearest
  uint32_t good_gpus = 0;       // that hold it
  size_t gpu = 0;               // the nearest
};
MachineFit fit_on_machine(const Job& job, const Machine& machine);

}  // namespace cufit::pack
