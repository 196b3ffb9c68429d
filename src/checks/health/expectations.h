// SPDX-License-Identifier: Apache-2.0
// What a site asks for and doctor has no opinion of: a number of GPUs, a driver, a MIG layout. Each
// is a finding of a rule of data/health.toml.
#pragma once

#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/health/health_rules.h"

namespace cufit::checks {

struct RuleFinding {
  std::string rule;
  Finding finding;
  std::string action = {};  // in place of the rule's
};
// `severity` of what is found is error; how much its rule counts is decided by the caller. A fact
// that a rule needs and that is missing is a finding with Severity::unknown.
std::vector<RuleFinding> check_expectations(const Input& input, const HealthRules& rules);

}  // namespace cufit::checks
