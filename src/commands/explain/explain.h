// SPDX-License-Identifier: Apache-2.0
// `cufit explain`: what is behind a pasted error, log or transcript, best guess first, with what in
// the text proves it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct ExplainRequest {
  std::vector<std::string> files;   // none: standard input
  bool here = false;                // with the facts of this machine beside the text
  std::optional<std::string> from;  // with those of a recording
  bool json = false, verbose = false;
};

std::span<const Option> explain_options();
int run_explain(const Context& context, const ExplainRequest& request);

}  // namespace cufit::commands
