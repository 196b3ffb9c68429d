// SPDX-License-Identifier: Apache-2.0
// `cufit quota status`: what the quota domains of `cufit run --vram` hold, beside what NVML says.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct QuotaStatusRequest {
  std::vector<std::string> domains;  // names of --share, or files; none: all
  bool json = false;
};

std::span<const Option> quota_status_options();
// Error not_found: a domain that was named is not there.
int run_quota_status(const Context& context, const QuotaStatusRequest& request);

}  // namespace cufit::commands
