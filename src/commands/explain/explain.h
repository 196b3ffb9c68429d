// SPDX-License-Identifier: Apache-2.0
// `cufit explain`: what is behind a pasted error, log or transcript, best guess first, with what in
// the text proves it.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> explain_options();
int run_explain(const Arguments& arguments);

}  // namespace cufit::commands
