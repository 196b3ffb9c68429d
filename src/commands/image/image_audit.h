// SPDX-License-Identifier: Apache-2.0
// `cufit image audit`: what is inside a saved container image and where it runs, without running or
// unpacking it.
#pragma once

#include <span>

#include "commands/command.h"

namespace cufit::commands {

std::span<const Option> image_audit_options();
int run_image_audit(const Arguments& arguments);

}  // namespace cufit::commands
