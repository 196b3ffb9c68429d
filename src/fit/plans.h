// SPDX-License-Identifier: Apache-2.0
// Ways to train with the same number of samples per step in less memory: what else the program
// could switch on (each combination traced), how its batch is cut into micro-batches, and
// expandable segments. All sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fit/link_time.h"
#include "fit/prediction.h"
#include "fit/step_time.h"

namespace cufit::fit {

// One program that was traced.
struct PlanProgram {
  // "bf16", "fp16", "checkpointing", "fused", "foreach_off", "8bit"; of several ranks "zero1",
  // "fsdp", "fsdp:no-reshard", "hsdp:4", "tp:2", "offload"; empty: as it is.
  std::vector<std::string> switches;
  StepProgram steps;
  // With a step over two micro-batches after them: what any number of them needs. nullopt: the
  // program could not be traced so.
  std::optional<StepProgram> accumulating;
  Dealing dealing;
  uint64_t more_outside = 0;  // what NCCL takes beside that of the program as it is
};

struct PlanCard {
  std::string name;
  Setup setup;  // with the card's capacity
};

struct TrainingPlan {
  size_t program = 0;
  // Of those ranks that work on the same samples. Their product is the same in all plans, times the
  // ranks of a group of tensor parallelism.
  uint64_t micro_batch = 0, accumulation = 1;
  bool expandable_segments = false;            // switched on by the plan
  uint64_t peak_allocated = 0, peak_reserved = 0, peak_reserved_upper = 0;
  double sent = 0;           // bytes that one rank sends in a step
  double relative_time = 0;  // of a step; 1: the program as it is. 0: not known
  bool frontier = false;     // no other plan needs less memory and no more time
  size_t changes = 0;        // how much is to be switched on
};

// What a plan says of a card: by the upper value.
struct PlanOnCard {
  size_t plan = 0;
  size_t card = 0;
  bool fits = false;
  uint64_t retries = 0;  // above 0: only by giving cached memory back
};

struct PlanQuestion {
  uint64_t batch = 0;         // samples of one micro-batch of the program as it is
  uint64_t accumulation = 1;  // micro-batches that it takes itself
  Setup setup;                // without a bound
  CardSpeed speed;
  LinkSpeed links;
};

struct Plans {
  // Of one step of one rank of the program as it is; all ranks together train the same in all plans.
  uint64_t samples = 0;
  std::vector<TrainingPlan> plans;   // by time, then memory; the first is not always as it is
  size_t as_it_is = 0;               // of plans
  std::vector<PlanOnCard> on_cards;  // of the plans that are shown: shown()
  std::vector<std::optional<size_t>> cheapest;  // by card: the fastest that fits; nullopt: none
  // Worth a line: as it is, the frontier, and what is cheapest for a card. Ascending.
  std::vector<size_t> shown() const;
};

// The first of `programs` is the program as it is.
Plans plans_of(std::span<const PlanProgram> programs, const PlanQuestion& question,
               std::span<const PlanCard> cards);

}  // namespace cufit::fit
