// SPDX-License-Identifier: Apache-2.0
// NVIDIA's two kernel modules: from Blackwell on a GPU needs the open one, before Turing the
// proprietary one, and a machine loads one of them.
#pragma once

#include <vector>

#include "base/version.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

// Some of these GPUs need one module and some the other: no Linux driver runs them together.
bool need_both_modules(const std::vector<ComputeCapability>& gpus,
                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::checks
