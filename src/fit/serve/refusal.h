// SPDX-License-Identifier: Apache-2.0
// What an engine refuses however much memory there is: old cards, shares that do not come out even.
#pragma once

#include <optional>

#include "fit/serve/serve_answer.h"

namespace cufit::fit {

// The first that the engine would meet.
std::optional<ServeRefusal> serve_refusal(const ServedModel& model, const ServeQuestion& question,
                                          const Card& card, const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
