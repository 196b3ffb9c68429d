// SPDX-License-Identifier: Apache-2.0
// The command that installs a torch which fits the GPU, driver, Python and platform of the text,
// for causes that only the text shows (a check has worked out its own): argument `install`. Where
// no wheel fits, a variant says what is in the way: "no_wheel", "driver_too", "python_too".
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "explain/explain.h"

namespace cufit::explain {

// `clues`: names of those that the text holds.
void fill_torch_steps(std::vector<Cause>& causes, const facts::Facts& facts,
                      const knowledge::Knowledge& knowledge,
                      std::span<const std::string_view> clues);

}  // namespace cufit::explain
