// SPDX-License-Identifier: Apache-2.0
// From what the text says and what the checks found to ranked causes.
#pragma once

#include <span>
#include <vector>

#include "explain/evidence.h"
#include "explain/vocabulary.h"

namespace cufit::explain {

struct Ranking {
  std::vector<Cause> causes;
  std::vector<Ignored> ignored;
};

// `findings`: of doctor's checks over the facts that the text claims; only_text: no machine's facts
// were joined to them. `votes`: of the text's words. `ordinary_error`: the text of a dead run ends
// with an exception of the program's own logic, so that only strong signs speak for another cause.
Ranking rank_causes(const knowledge::Knowledge& knowledge, const TextEvidence& evidence,
                    std::span<const checks::Finding> findings, bool only_text,
                    const Votes& votes = {}, const DeadRun* dead = nullptr,
                    bool ordinary_error = false);

}  // namespace cufit::explain
