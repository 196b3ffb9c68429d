// SPDX-License-Identifier: Apache-2.0
// How sure a cause can be at most, by what the text says after the lines that speak for it: another
// failure ends the run, or the run succeeds. Used by scores; judges one cause at a time.
#pragma once

#include "explain/evidence.h"

namespace cufit::explain {

struct ConfidenceCap {
  Confidence most = Confidence::certain;
  // The message of a failure that comes later and is not this cause's; 0 = none.
  uint64_t other_failure = 0;
  // The run succeeded after the cause's last line, which rules it out.
  const Success* refuted_by = nullptr;
};

// `certain`: its signs or facts would prove it by themselves.
ConfidenceCap confidence_cap_of(const knowledge::Knowledge& knowledge, const TextEvidence& evidence,
                                size_t index, bool certain);

// Lines of the cause's signs near the failure's message.
bool speaks_of(const TextEvidence& evidence, size_t index, uint64_t failure, int least_weight = 0);

}  // namespace cufit::explain
