// SPDX-License-Identifier: Apache-2.0
// What installer.cc and conda_prefix.cc share: an installer is found, asked for its version and
// run.
#pragma once

#include <string>
#include <vector>

#include "host/install/installer.h"

namespace cufit::host {

// Version empty where it cannot be run or says none; `why` tells.
Installer ask_installer(Installer::Kind kind, std::vector<std::string> command,
                        Interrupts& interrupts, std::string& why);
std::string program_in_path(const Host& host, const std::string& name);  // empty = not there
// Error{io} or Error{malformed} with the last lines of what it said.
Result<ChildOutcome> run_installer(const Installer& installer, ChildOptions options,
                                   const std::string& doing, Interrupts& interrupts);

}  // namespace cufit::host
