// SPDX-License-Identifier: Apache-2.0
// Did anybody look at what a rule of [health] decides by? Where nobody did, "ok" would be a word
// that no fact stands behind. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "checks/check.h"

namespace cufit::checks {

// True also where the answer was that a card has no such thing. `gpus`: those that are judged;
// empty = all.
bool was_looked_at(std::string_view rule, const Input& input, const std::vector<uint32_t>& gpus);

}  // namespace cufit::checks
