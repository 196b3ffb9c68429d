// SPDX-License-Identifier: Apache-2.0
// Which stacks deserve an area of their own in a picture: those that held most at the peak, then
// those that held most over the whole run. The rest is one group.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/analysis/lifetimes.h"

namespace cufit::analysis {

struct StackGroups {
  std::vector<uint32_t> stacks;  // of the Snapshot, by bytes at the peak; group i + 1 is stacks[i]
  std::vector<uint8_t> of_row;   // 0: any other stack
};

// `peak` is the event of the moment that counts first. At most 254 groups.
StackGroups stack_groups(const Lifetimes& lifetimes, uint32_t peak, size_t groups);

}  // namespace cufit::analysis
