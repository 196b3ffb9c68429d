// SPDX-License-Identifier: Apache-2.0
// Xids of the kernel's log, by what NVIDIA's catalog says is to be done at once, or by a site's
// numbers. The log tells of the time since boot: an Xid that a reset has answered since is past.
#pragma once

#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/health/health_rules.h"

namespace cufit::checks {

struct XidFinding {
  Finding finding;     // error, or warning where it is past or only told
  std::string action;  // of an error
};
// `gpus`: those that are judged; empty = all.
std::vector<XidFinding> judge_xids(const Input& input, const HealthRules& rules,
                                   const std::vector<uint32_t>& gpus);

}  // namespace cufit::checks
