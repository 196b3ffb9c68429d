// SPDX-License-Identifier: Apache-2.0
// `cufit quota verify`: proves by trial that a limit holds on every way to memory that can be tried here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct QuotaVerifyRequest {
  std::optional<std::string> vram;  // none: the quota in which cufit runs, else 2 GiB
  std::optional<std::string> gpu;   // CUDA's number or a UUID; none: all that it shows
  bool json = false;
  std::vector<std::string> command;
};

std::span<const Option> quota_verify_options();
// k_ok: every tried way was refused at the limit and allowed below it. k_findings: one was not, or none was tried.
int run_quota_verify(const Context& context, const QuotaVerifyRequest& request);

}  // namespace cufit::commands
