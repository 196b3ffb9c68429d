// SPDX-License-Identifier: Apache-2.0
// Why a program under `cufit run --supervise` ended: what it wrote, what its processes recorded of GPU memory, and what the
// system says of host memory.
#pragma once

#include <vector>

#include "explain/explain.h"
#include "facts/supervised_run.h"
#include "host/quota/ring_files.h"
#include "knowledge/knowledge.h"

namespace cufit::commands {

struct EndedLaunch {
  bool is_cpu = false;   // its environment is made for no GPU
  bool limited = false;  // by --vram
};

// `facts`: of the machine right after the end.
explain::Explanation explain_end(const facts::Supervised& run, const facts::Facts& facts,
                                 const std::vector<host::RingFile>& rings,
                                 const EndedLaunch& launch, const knowledge::Knowledge& knowledge);

}  // namespace cufit::commands
