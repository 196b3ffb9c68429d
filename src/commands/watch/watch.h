// SPDX-License-Identifier: Apache-2.0
// `cufit watch`: alarms of this machine's GPUs without any server.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct WatchRequest {
  std::vector<std::string> notify, exec;
  std::optional<std::string> rules, interval, repeat, from;
  bool json = false, unit = false, test = false;
};

std::span<const Option> watch_options();
// Until a signal ends it. With `--from` and `--test` exit code 1: there were alarms, a receiver did not take the test.
int run_watch(const Context& context, const WatchRequest& request);

}  // namespace cufit::commands
