// SPDX-License-Identifier: Apache-2.0
// `cufit export`: a lock as the files of other tools.
#pragma once

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> export_options();
int run_export(const Arguments& arguments);

}  // namespace cufit::commands
