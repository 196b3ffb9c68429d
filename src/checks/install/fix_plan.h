// SPDX-License-Identifier: Apache-2.0
// All steps of a machine in the order in which they are taken, and what the engine would say
// after them. Pure: nothing is run.
#pragma once

#include <vector>

#include "checks/finding.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

struct FixStep {
  Finding finding;         // whose step it is
  bool simulated = false;  // facts show what it changes, and the finding is gone after it
};

struct FixPlan {
  std::vector<FixStep> steps;
  LinkState before = LinkState::unknown;
  // With all simulated steps done. Where a step is not simulated it cannot be told.
  LinkState after = LinkState::unknown;
  bool certain = false;   // every step is simulated
  size_t left_alone = 0;  // findings of environments that are not in use
  size_t notes = 0;       // findings that stop nothing: they get no step
};

// Of the machine and of the environment in use, of all where none is. Errors and warnings, the first finding of the report first; what is left after each change is
// asked of the engine again, so that a step that makes another one necessary brings it along.
FixPlan plan_fix(facts::Facts facts, const knowledge::Knowledge& knowledge);

}  // namespace cufit::checks
