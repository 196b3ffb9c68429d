// SPDX-License-Identifier: Apache-2.0
// `cufit lock`: the environments that serve the machines asked for, each with every package and
// hash. `cufit lock --check`: whether a lock still says what it was made from.
#pragma once

#include <span>

#include "commands/command.h"
#include "commands/lock/lock_job.h"

namespace cufit::commands {

std::span<const Option> lock_options();
int run_lock(const Context& context, const LockRequest& request);

int check_lock(const Context& context, const LockRequest& request);  // lock_check.cc

}  // namespace cufit::commands
