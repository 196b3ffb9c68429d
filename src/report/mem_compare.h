// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit mem compare` and its two views.
#pragma once

#include <string>
#include <vector>

#include "memory/analysis/comparison.h"
#include "report/report.h"

namespace cufit::report {

struct MemRun {
  std::string file;
  memory::Snapshot snapshot;
  memory::VerifiedRecording verified;
  analysis::Observation seen;
};

struct MemCompareView {
  const MemRun& a;
  const MemRun& b;
  const std::vector<analysis::PlaceChange>& places;
  const knowledge::Knowledge& knowledge;
};

std::string mem_compare_text(const MemCompareView& view, const Style& style);
std::string mem_compare_json(const MemCompareView& view);  // schema cufit.mem.compare/1

}  // namespace cufit::report
