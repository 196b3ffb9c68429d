// SPDX-License-Identifier: Apache-2.0
// What stands beside what is told of this machine: its name and its time.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "commands/context.h"

namespace cufit::commands {

std::string machine_name(const Context& context);  // its host name, printable; empty: not known
int64_t utc_offset_at(std::time_t time);           // seconds by which clocks here are ahead of UTC

}  // namespace cufit::commands
