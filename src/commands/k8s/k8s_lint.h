// SPDX-License-Identifier: Apache-2.0
// `cufit k8s lint`: mistakes about GPUs in manifests of Kubernetes, before a cluster sees them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/doctor/doctor.h"

namespace cufit::commands {

struct K8sLintRequest {
  std::vector<std::string> files;  // "-" is standard input
  std::optional<std::string> image;
  std::vector<std::string> nodes;  // recordings, Node objects, folders of both
  FailOn fail_on = FailOn::error;
  bool json = false;
  bool verbose = false;
};

std::span<const Option> k8s_lint_options();
int run_k8s_lint(const Context& context, const K8sLintRequest& request);

}  // namespace cufit::commands
