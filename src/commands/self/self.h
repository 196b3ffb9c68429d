// SPDX-License-Identifier: Apache-2.0
// `cufit self`: what this program is and can do here; man page, completions and licences, all from
// its own tables.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "commands/command.h"

namespace cufit::commands {

struct SelfRequest {
  // "man", "completions", "causes", "licenses", "update-tables",
  // "variant-properties"; empty: what this program is
  std::string topic;
  std::string argument;  // of completions: the shell; of update-tables: file or address
  std::optional<std::string> sha256;  // of update-tables
  bool remove = false;
  bool json = false;  // of variant-properties
};

std::span<const Option> self_options();
int run_self(const Context& context, const SelfRequest& request);
// `cufit` alone: the most useful commands and one line about this machine.
int run_overview(const Context& context);

}  // namespace cufit::commands
