// SPDX-License-Identifier: Apache-2.0
// What the findings and the rows of "GPUs together" both ask of facts.together.
#pragma once

#include <string>

#include "checks/gpu_links.h"

namespace cufit::checks {

struct BusSpeed {
  double have = 0;      // bytes per second; 0: not measured
  bool judged = false;  // the links are known, and enough bytes were summed
  bool slow = false;
  GroupLinks links;
};
BusSpeed bus_speed(const Input& input);

// The time was over before the processes met, or there was no memory: that says nothing of the GPUs.
bool ended_before_start(const std::string& said);
// No channel of NCCL's goes straight from GPU to GPU.
bool goes_through_host(const facts::TogetherFacts& ran);

}  // namespace cufit::checks
