// SPDX-License-Identifier: Apache-2.0
// One card of a serving question.
#pragma once

#include "fit/serve/serve_answer.h"
#include "fit/serve/start_plan.h"

namespace cufit::fit {

struct Serving {
  const ServedModel& model;
  const ServedWeights& weights;
  const ServeQuestion& question;
  const knowledge::Knowledge& knowledge;
  uint64_t context = 0, sequences = 1;
  uint64_t most_context = 0;  // that an answer may name
};

ServeCard reckon_card(const Serving& serving, const Card& card);

}  // namespace cufit::fit
