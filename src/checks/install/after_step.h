// SPDX-License-Identifier: Apache-2.0
// The machine as it would be after a step: facts with one change, marked `assumed`, for which the
// engine can be asked again. What the change brings that no table knows becomes not_asked.
#pragma once

#include "checks/finding.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

Change torch_change(const facts::PythonEnv& env, std::string torch, std::string tag,
                    std::string python = {});
Change packages_change(const facts::PythonEnv& env, std::vector<std::string> requirements);
Change driver_change(uint32_t branch);

facts::Facts after_step(facts::Facts facts, const Change& change,
                        const knowledge::Knowledge& knowledge);

}  // namespace cufit::checks
