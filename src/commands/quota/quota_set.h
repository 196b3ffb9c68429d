// SPDX-License-Identifier: Apache-2.0
// `cufit quota set` and `cufit quota clear`: the limit of the kernel driver (615 and later) on a cgroup. The one command
// that changes the system.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "commands/command.h"

namespace cufit::commands {

struct QuotaClearRequest {
  std::optional<std::string> cgroup, container, pid;  // one of them
  bool dry_run = false;
};

struct QuotaSetRequest : QuotaClearRequest {
  std::optional<std::string> hard, soft;
};

std::span<const Option> quota_set_options();
std::span<const Option> quota_clear_options();
// k_findings: a GPU refused.
int run_quota_set(const Context& context, const QuotaSetRequest& request);
int run_quota_clear(const Context& context, const QuotaClearRequest& request);

}  // namespace cufit::commands
