// SPDX-License-Identifier: Apache-2.0
// The engine: facts and knowledge in, report out. Pure: no file, no clock, no environment.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checks/check.h"
#include "checks/finding.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

// --gpu / --driver: replaces the machine's GPUs or driver by described ones (facts marked
// `assumed`). Error{usage} for a GPU name or capability that the table does not know (with the
// nearest names).
struct WhatIf {
  std::vector<std::string> gpus;  // "RTX 4090" or "8.9"
  std::string driver;             // "535.183.01" or "535"
};
Result<facts::Facts> assume(facts::Facts facts, const WhatIf& what_if,
                            const knowledge::Knowledge& knowledge);

Report examine(const facts::Facts& facts, const knowledge::Knowledge& knowledge);

// The findings alone, ordered as a report has them, each GPU by itself.
std::vector<Finding> root_findings(const Input& input);

}  // namespace cufit::checks
