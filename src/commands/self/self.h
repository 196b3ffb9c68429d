// SPDX-License-Identifier: Apache-2.0
// `cufit self`: what this program is and can do here; man page, completions and licences, all from
// its own tables.
#pragma once

#include <span>
#include <string>

#include "commands/command.h"

namespace cufit::commands {

struct SelfRequest {
  std::string topic;  // "man", "completions", "causes", "licenses"; empty: what this program is
  std::string shell;  // of completions
};

std::span<const Option> self_options();
int run_self(const Context& context, const SelfRequest& request);
// `cufit` alone: the most useful commands and one line about this machine.
int run_overview(const Context& context);

}  // namespace cufit::commands
