// SPDX-License-Identifier: Apache-2.0
// What the options of `cufit watch` mean, with the files that they name read.
#pragma once

#include <string>
#include <vector>

#include "commands/watch/watch.h"
#include "report/notify/receiver.h"
#include "watch/alert_state.h"

namespace cufit::commands {

struct WatchSettings {
  std::vector<watch::WatchRule> rules;
  watch::AlertTimes times;
  double interval_s = 10;
  std::vector<report::Receiver> receivers;
  std::vector<std::string> programs;  // of --exec
  std::vector<std::string> exposed;   // files of addresses that other users may read
  std::vector<std::string> secrets;   // variables that hold addresses: for no program
};

// No error holds an address.
Result<WatchSettings> read_watch_settings(const Context& context, const WatchRequest& request);

// The words of a systemd unit: paths are absolute, no address stands in them. Error{usage} where one would.
Result<std::vector<std::string>> watch_unit_command(const Context& context,
                                                    const WatchRequest& request);

}  // namespace cufit::commands
