// SPDX-License-Identifier: Apache-2.0
// `cufit resolve`: which torch wheels run on a machine, best first, and what keeps the others from
// it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct ResolveRequest {
  std::vector<std::string> requirements;
  std::vector<std::string> targets;  // --for, as of read_target(); empty: this machine
  std::optional<std::string> python;
  std::optional<std::string> policy;  // a file
  bool default_index_only = false;
  std::vector<std::string> indexes;  // URLs, or NAME=URL
  bool offline = false;
  std::optional<std::string> measured;  // a file of `cufit bench`
  bool json = false;
  bool verbose = false;
};

std::span<const Option> resolve_options();
int run_resolve(const Context& context, const ResolveRequest& request);

}  // namespace cufit::commands
