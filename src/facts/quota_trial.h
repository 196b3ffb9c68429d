// SPDX-License-Identifier: Apache-2.0
// A trial of a quota (`cufit quota verify`): what is asked for, and what the probe and the quota's file answer. Filled by
// host/quota/quota_trial.cc, judged by resolve/quota/trial_verdict.h.
#pragma once

#include <cstdint>
#include <string>

namespace cufit::facts {

// Bytes that a limit surely has room for beside a context, and that it surely has not.
struct TrialSizes {
  uint64_t below = 0, above = 0;
};

struct TrialAnswer {
  std::string phase;           // of the probe; "crashed" or "timeout": it did not come that far
  int below = -1, above = -1;  // CUresult; -1: not asked
  uint64_t refusals = 0;       // that the quota counted meanwhile
  uint64_t card_refusals = 0;  // within the quota, by a full card
  std::string note;            // the last line of its stderr, or how it ended
};

}  // namespace cufit::facts
