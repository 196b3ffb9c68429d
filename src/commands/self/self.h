// SPDX-License-Identifier: Apache-2.0
// `cufit self`: what this program is and can do here; man page, completions and licences, all from
// its own tables.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> self_options();
int run_self(const Arguments& arguments);
// `cufit` alone: the most useful commands and one line about this machine.
int run_overview(const Arguments& arguments);

}  // namespace cufit::commands
