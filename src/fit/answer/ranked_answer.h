// SPDX-License-Identifier: Apache-2.0
// The answer where several ranks were traced: that of the one that takes most, and the others
// beside it.
#pragma once

#include <optional>
#include <vector>

#include "fit/answer/traced_answer.h"

namespace cufit::fit {

struct RankedTraces {
  Traces first;
  std::vector<RankTraces> ranks;    // others of its group
  std::vector<WorldAnswer> worlds;  // groups of other sizes, its own among them
};

// `run`: a real run of the program beside its traces. Errors as of TracedAnswer.
Result<Answer> ranked_answer(RankedTraces traces, const Question& question,
                             const knowledge::Knowledge& knowledge,
                             const std::optional<MeasuredRun>& run);

// What one trace says of its group.
Result<WorldAnswer> world_answer(Traces traces, const Question& question,
                                 const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
