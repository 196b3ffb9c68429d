// SPDX-License-Identifier: Apache-2.0
// `cufit mem view`: a recorded run as an interactive page in one file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/mem/mem_snapshot.h"

namespace cufit::commands {

struct MemViewRequest : SnapshotRequest {
  std::string output;  // the page
};

std::span<const Option> mem_view_options();
int run_mem_view(const Context& context, const MemViewRequest& request);

}  // namespace cufit::commands
