// SPDX-License-Identifier: Apache-2.0
// Why a program under `cufit run --supervise` ended: what it wrote, what its processes recorded of GPU memory, and what the
// system says of host memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/explain.h"
#include "facts/supervised_run.h"
#include "formats/system/gpu_ring.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

struct SupervisedEnd {
  const facts::Supervised& run;
  std::string_view tail;        // the end of its output, without colours and bars
  const facts::Facts& machine;  // right after the end
  const std::vector<formats::GpuRing>& rings;
  const std::vector<std::string>& ring_files;  // their paths
  bool is_cpu = false;                         // its environment is made for no GPU
  bool limited = false;                        // by --vram
};
Explanation explain_end(const SupervisedEnd& end, const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
