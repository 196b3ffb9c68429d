// SPDX-License-Identifier: Apache-2.0
// The commands of a text as its reader can type them: with the program that keeps his environment in
// place of `python -m pip`.
#pragma once

#include <string>
#include <string_view>

#include "explain/keeper.h"

namespace cufit::report {

// `tool`: what uvx runs, where the text names it.
std::string for_keeper(std::string_view text, explain::Keeper keeper, std::string_view tool);

}  // namespace cufit::report
