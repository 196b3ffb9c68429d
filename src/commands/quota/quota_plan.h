// SPDX-License-Identifier: Apache-2.0
// `cufit quota plan`: what could hold a limit of GPU memory on this machine, best first, and what would make a better one
// possible.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "commands/command.h"

namespace cufit::commands {

struct QuotaPlanRequest {
  std::optional<std::string> from;  // a recording
  bool json = false;
};

std::span<const Option> quota_plan_options();
// k_findings: nothing would hold a limit.
int run_quota_plan(const Context& context, const QuotaPlanRequest& request);

}  // namespace cufit::commands
