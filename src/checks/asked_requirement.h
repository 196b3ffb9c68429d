// SPDX-License-Identifier: Apache-2.0
// What an installed package asks of another one, and where two of them ask for what no version meets.
#pragma once

#include <string>
#include <vector>

#include "checks/finding.h"
#include "facts/facts.h"
#include "formats/python/requirement.h"

namespace cufit::checks {

struct Asked {
  const facts::Distribution* asker;
  const facts::Distribution* installed;  // null = nowhere
  formats::Requirement requirement;
};

// "nvidia-cublas==13.1.0.3.*": without extras' spaces and brackets.
std::string spec_of(const formats::Requirement& requirement);

// The first of `needs` that no version meets together with this one; null: there is none. Seen where
// one of the two is exact.
const Asked* contradicted_by(const Asked& need, const std::vector<Asked>& needs);

// One finding for each package that asks for what another one, torch before all others, rules out:
// no step in this environment helps it.
std::vector<Finding> contradictions(const facts::PythonEnv& env, const std::vector<Asked>& needs);

}  // namespace cufit::checks
