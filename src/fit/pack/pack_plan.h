// SPDX-License-Identifier: Apache-2.0
// Who goes where: jobs with what each takes, GPUs with what each has, an assignment and what was
// proved of it. All sizes in bytes, multiples of 1 MiB where a job is concerned.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fit/pack/mig_profiles.h"

namespace cufit::pack {

inline constexpr size_t k_most_jobs = 256, k_most_gpus = 64;
inline constexpr uint64_t k_most_job_bytes = uint64_t{1} << 44;  // 16 TiB: no card has it

// What a job takes: of a card that was predicted by name that, else `allocator` and the context of
// the card, or `total`.
struct JobSize {
  std::optional<uint64_t> allocator;  // PyTorch's, a safe upper value where it was predicted
  std::optional<uint64_t> total;      // all of the process
  struct OnCard {
    std::string gpu;  // Gpu::name
    uint64_t allocator = 0, outside = 0;
  };
  std::vector<OnCard> on_cards;
};

struct Job {
  std::string name;
  std::vector<std::string> command;  // empty: not known
  JobSize size;                      // on each of its GPUs
  uint32_t gpus = 1;                 // of one machine; more than one: fleet_plan.h alone
  bool whole = false;                // nobody else gets a GPU of it
  bool part = false;                 // this is one GPU of a job of several
};
// Such a job gets no MIG instances: a process sees one of them.
inline bool is_of_several(const Job& job) { return job.part || job.gpus > 1; }

// A GPU to pack onto, or an instance of one that is divided already.
struct Gpu {
  std::string name;   // for people: "H100 SXM5 80GB", "1g.10gb of GPU 0"
  std::string table;  // Gpu::name of data/gpus.toml; empty: not in it
  // For CUDA_VISIBLE_DEVICES: "0", "GPU-...", "MIG-..."; empty: an instance whose UUID is not known.
  std::string visible;
  uint64_t usable = 0;   // that processes may have, contexts included
  uint64_t in_use = 0;   // besides, by other programs when it was read: free for who waits for them
  uint64_t context = 0;  // of one process
  uint32_t index = 0;    // nvidia-smi's
  bool is_instance = false;
  std::string profile;    // of an instance: "3g.40gb"
  uint32_t same = 0;      // how many instances of that name on the GPU come before it
  bool whole = false;     // who asks for it gets all of it: one job alone
  uint64_t grain = 0;     // it is given in parts of this size (Slurm's shards); 0: in any
  bool in_parts = false;  // others have shards of it: nobody gets it as a whole
};
// "NVIDIA H200" of "GPU 3, NVIDIA H200".
std::string model_name(const Gpu& gpu);

enum class Goal { fewest, headroom };

struct PlacedJob {
  size_t job = 0;        // of the jobs
  uint64_t bytes = 0;    // its quota
  uint64_t context = 0;  // of these; 0 where only the total is known
  std::optional<MigInstance> instance;
  uint32_t same = 0;  // how many instances of that name on the GPU come before it
};
struct PackedGpu {
  std::vector<PlacedJob> jobs;  // the largest first; by place where it is divided
  uint64_t usable = 0, left = 0;
  std::optional<MigCard> divided;  // --mig, and its table has profiles
  uint32_t free_units = 0;         // of a divided GPU
};
struct Unplaced {
  size_t job = 0;
  uint64_t bytes = 0;      // on the GPU that comes nearest
  bool too_large = false;  // for each GPU even alone; else there is no room beside the others
  uint64_t missing = 0;    // by how much, on that GPU
  size_t gpu = 0;
};

struct Plan {
  std::vector<PackedGpu> gpus;  // in the order of the question
  std::vector<Unplaced> unplaced;
  Goal goal = Goal::fewest;
  size_t used = 0;
  bool optimal = false;
  size_t most_placed = 0, fewest_used = 0;  // no plan places more, or uses fewer
  uint64_t headroom = 0,
           most_headroom = 0;  // the least that a used GPU has left; no plan leaves more
};

struct Question {
  std::vector<Job> jobs;
  std::vector<Gpu> gpus;
  Goal goal = Goal::fewest;
  bool divide = false;  // --mig: a job has an instance of its own where the GPU can be divided
};

// Error{usage} for more jobs or GPUs than the search is made for, and for a job of several GPUs.
Result<Plan> make_plan(const Question& question, const knowledge::Knowledge& knowledge);

// By another search, of any number. No job may go where `search` finds no room.
using AssignmentSearch = std::function<Assignment(const Problem&)>;
Plan plan_by(const Question& question, const knowledge::Knowledge& knowledge,
             const AssignmentSearch& search);

// Bytes that the job takes on the GPU, rounded up to MiB; nullopt: more than any card has.
std::optional<uint64_t> bytes_on(const Job& job, const Gpu& gpu);

// What nobody else gets of the GPU then: the bytes, whole parts, or all of it. nullopt: it does not
// fit alone.
std::optional<uint64_t> taken_on(const Job& job, const Gpu& gpu);
// From here on it is a job that uses a GPU, and no screen or service: whoever gives GPUs as a whole
// gave it away.
inline constexpr uint64_t k_given_away = uint64_t{1} << 30;

}  // namespace cufit::pack
