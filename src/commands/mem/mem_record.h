// SPDX-License-Identifier: Apache-2.0
// `cufit mem record -- python train.py`: the program with torch's memory history on.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> mem_record_options();
int run_mem_record(const Arguments& arguments);

}  // namespace cufit::commands
