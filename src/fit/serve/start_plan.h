// SPDX-License-Identifier: Apache-2.0
// The ways in which an engine can be started on a card, the usual one first, each leaving more for
// the cache than the one before.
#pragma once

#include "fit/serve/serve_answer.h"

namespace cufit::fit {

struct StartPlan {
  StepSettings step;
  double share = 0;         // --gpu-memory-utilization, --mem-fraction-static
  uint64_t budget = 0;      // bytes of the card that weights, step and cache share
  bool step_apart = false;  // the budget is weights and cache alone (sglang)
};

// Never empty.
std::vector<StartPlan> start_plans(const ServeQuestion& question, const ServedModel& model,
                                   const Card& card, uint64_t sequences,
                                   const knowledge::Knowledge& knowledge);

// Command line of `plan` for a context of so many tokens.
std::vector<std::string> start_flags(const ServeQuestion& question, const ServedModel& model,
                                     const Card& card, const StartPlan& plan, uint64_t context,
                                     uint64_t sequences, uint64_t gpu_layers);

// "0.9", "0.935": rounded down.
std::string share_text(double share);

}  // namespace cufit::fit
