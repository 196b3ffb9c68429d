// SPDX-License-Identifier: Apache-2.0
// The options of `cufit export` for a cluster's files: checked words, for they stand in YAML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/context.h"
#include "report/export_kubernetes.h"

namespace cufit::commands {

struct ClusterOptions {
  std::optional<std::string> image, space, nodes, gpus, shared;
  std::vector<std::string> mig;  // "1g.10gb=4"
};

// Error{usage} names the option.
Result<report::ClusterView> cluster_view(const Context& context, const std::string& to,
                                         const ClusterOptions& options);

}  // namespace cufit::commands
