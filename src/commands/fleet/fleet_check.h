// SPDX-License-Identifier: Apache-2.0
// `cufit fleet check`: may each node be given new work, and which are set up otherwise than the
// most?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/fleet/fleet_nodes.h"

namespace cufit::commands {

struct FleetCheckRequest : FleetSource {
  std::optional<std::string> baseline;  // a recording; else, or "majority": what most nodes have
  std::optional<std::string> policy;    // a cufit.toml with [health]
  std::optional<std::string> lock;      // a folder with a cufit.lock
  std::vector<std::string> jobs;        // files and sizes: which nodes can take each
  bool json = false;
  std::optional<std::string> html;
};

std::span<const Option> fleet_check_options();
// Exit::k_findings where a node is not usable, differs, or did not answer.
int run_fleet_check(const Context& context, const FleetCheckRequest& request);

}  // namespace cufit::commands
