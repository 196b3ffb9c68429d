// SPDX-License-Identifier: Apache-2.0
// `cufit doctor`: will PyTorch run on each GPU of this machine with each environment, and if not,
// which link is broken?
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> doctor_options();
int run_doctor(const Arguments& arguments);

}  // namespace cufit::commands
