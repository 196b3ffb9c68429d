// SPDX-License-Identifier: Apache-2.0
// The user's program as a child with cufit's own files, for a launch that has something to put away afterwards. Used by
// `cufit run --by mps`; with its output kept: supervise.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/supervised_run.h"

namespace cufit::host {

struct AttendedRun {
  std::optional<facts::StartFailure> not_started;
  int exit_code = 0;  // 128 + number where a signal ended it
  int signal = 0;
};

// Signals that reach cufit are passed on; what the terminal sends reaches the program by itself. If cufit is killed, it gets
// SIGTERM.
Result<AttendedRun> attend(const std::string& path, const std::vector<std::string>& command,
                           const std::vector<std::string>& variables);

}  // namespace cufit::host
