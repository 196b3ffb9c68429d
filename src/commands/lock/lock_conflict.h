// SPDX-License-Identifier: Apache-2.0
// Which demands of a lock cannot be met together, where the installer found no solution.
#pragma once

#include <string>
#include <vector>

#include "host/install/installer.h"

namespace cufit::commands {

// A part of `demands` without a solution, of which none can be left out; found by asking the
// installer again with fewer of them, so that those named first are left out first where there is a
// choice. `file` is written over. Empty where that takes too long, or where the demands alone do
// have a solution: the installer may have read more than these lines (a project, constraints).
std::vector<std::string> package_conflict(const host::Installer& uv, host::CompileRequest request,
                                          std::vector<std::string> demands, const std::string& file,
                                          host::Interrupts& interrupts);

}  // namespace cufit::commands
