// SPDX-License-Identifier: Apache-2.0
// What keeps torch from a GPU, whichever torch it is.
#pragma once

#include <optional>

#include "checks/finding.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"
#include "resolve/wheel/target.h"

namespace cufit::resolve {

// The first error of doctor's that is about the machine, its container or its only GPU, and not
// about an environment. A machine that has no GPU lacks nothing; one whose container or WSL hides
// it does. A description has no facts, and so none.
std::optional<checks::Finding> obstacle_of(const facts::Facts& facts, const Target& target,
                                           const knowledge::Knowledge& knowledge);

// No one Linux driver runs all of these GPUs: some need its open kernel module, others the
// proprietary one.
bool modules_conflict(const Target& target, const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
