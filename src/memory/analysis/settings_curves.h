// SPDX-License-Identifier: Apache-2.0
// Reserved bytes over time had the settings been others: one replay per settings string, without a
// memory limit, so that the curves show what each would have needed. Where the recorded run died,
// also whether it would have lived within the limit that it had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/analysis/segment_ranges.h"
#include "memory/replay/what_if.h"

namespace cufit::analysis {

// `open`: the limit is known only as a range whose ends differ, or the replay is not exact.
enum class Outcome : uint8_t { survives, dies, open };
const char* to_string(Outcome outcome);

struct WhatIf {
  std::string settings;  // of PYTORCH_CUDA_ALLOC_CONF; empty: the defaults
  bool as_recorded = false;
  memory::ReplayResult result;  // without a limit
  StepSeries reserved;
  std::optional<Outcome>
      within_limit;  // VerifiedRecording::limit; none where the run had no end to survive
};

// The usual settings and the recorded ones, the lowest peak of reserved bytes first; the recorded
// ones before all. Runs several threads.
std::vector<WhatIf> what_ifs(const memory::VerifiedRecording& verified);

}  // namespace cufit::analysis
