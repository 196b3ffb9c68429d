// SPDX-License-Identifier: Apache-2.0
// Several programs at once (ssh, kubectl, srun), each with a limit of time and of what it may say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/process/child_process.h"

namespace cufit::host {

struct FanOutTask {
  std::string name;  // of the machine that is asked
  std::vector<std::string> command;
};

struct FanOutAnswer {
  std::string name;
  int code = 0;  // exit code; 128 + signal where one ended it
  bool timed_out = false, too_long = false;
  std::string start_error;  // it could not be started
  std::string out, err;     // err: the last 4 KiB
};

struct FanOutOptions {
  double seconds = 30;  // of each program
  size_t at_once = 64;
  size_t most_bytes = 8u << 20;  // of each program's stdout; more is `too_long`
  std::function<void(size_t done)> progress;
};

// In the order of the tasks. A program that is over its time is asked to end, and made to 3 s later.
// Error{cancelled} where a signal asked cufit to end: what runs is ended in the same way.
Result<std::vector<FanOutAnswer>> fan_out(const std::vector<FanOutTask>& tasks,
                                          const FanOutOptions& options, Interrupts& interrupts);

}  // namespace cufit::host
