// SPDX-License-Identifier: Apache-2.0
// A run before memory_trend, sample by sample: when it is first named, and how far it was on its way then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unit/watch/memory_runs.h"
#include "watch/memory_trend.h"

namespace cufit::test {

struct Judged {
  bool named = false;
  double at = 0;       // seconds
  double way = 0;      // of a leak: share of what it takes until the card is full
  bool early = false;  // of a leak: named before it began
  double full_in_s = 0, early_s = 0, late_s = 0;  // as said then
  double truth_s = 0;                             // from then on to the last sample
};

// Asked at every sample up to the first `growing`; `points_per_level` as of MemorySeries.
Judged judged(const MemoryRun& run,
              size_t points_per_level = watch::MemorySeries::k_points_per_level);

}  // namespace cufit::test
