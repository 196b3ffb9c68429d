// SPDX-License-Identifier: Apache-2.0
// The lines of code, flags and variables that switch a plan of `cufit fit --plan` on, in the form
// that suits what the program is written with. Code, the same in every language.
#pragma once

#include <string>
#include <vector>

#include "report/fit.h"

namespace cufit::report {

struct PlanLines {
  std::string name;                // "bf16", "accumulation", "expandable_segments"
  std::string at;                  // where it belongs, "train.py:31"; empty: not known
  std::vector<std::string> lines;  // of code, or one flag or variable
};

// One entry for each change of the plan. `settings`: of the allocator as it is.
std::vector<PlanLines> plan_lines(const fit::PlansAnswer& plans, const fit::TrainingPlan& plan,
                                  const std::string& settings);

}  // namespace cufit::report
