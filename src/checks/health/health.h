// SPDX-License-Identifier: Apache-2.0
// May this node be given new work? Facts of the machine (no CUDA context, no environment) against
// data/health.toml and a site's [health]. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/check.h"
#include "checks/health/health_rules.h"

namespace cufit::checks {

enum class Usable { yes, no, unknown };

struct HealthReport {
  struct Rule {
    std::string id;
    HealthLevel level = HealthLevel::off;
    // ok, warning, error; unknown: a fact that it needs is missing
    Severity state = Severity::ok;
    std::string source;
  };
  struct Missing {
    std::string what, why;  // "kernel log", "Operation not permitted"
  };
  Usable usable = Usable::unknown;
  // The word for schedulers: "ok", "watch", "drain", "reboot", "replace"
  std::string action = "ok";
  std::vector<Finding> findings;  // what makes it not usable first
  std::vector<Rule> rules;        // in the order of data/health.toml
  std::vector<Missing> missing;   // what could not be looked at
  std::string unknown_because;    // of Usable::unknown
  uint32_t gpus = 0;              // that answered, of those that are judged
  std::string gpu_name;           // of all of them; empty = several kinds, or none
  std::string driver;
};

// `gpus`: indices that are judged alone; empty = all.
HealthReport judge_health(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                          const HealthRules& rules, const std::vector<uint32_t>& gpus);

// "0,3", "0-3,6", UUIDs (whole or their beginning) or device nodes ("/dev/nvidia3") as indices of
// NVML; k_no_such_gpu for a node that no GPU has. Error{usage}: no such form, or a UUID that no GPU
// of `facts` has.
inline constexpr uint32_t k_no_such_gpu = UINT32_MAX;
Result<std::vector<uint32_t>> gpus_of_list(const std::string& list, const facts::Facts& facts);

}  // namespace cufit::checks
