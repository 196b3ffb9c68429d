// SPDX-License-Identifier: Apache-2.0
#include "unit/watch/foresight_judge.h"

#include <algorithm>

namespace cufit::test {

Judged judged(const MemoryRun& run, size_t points_per_level) {
  Judged out;
  watch::MemorySeries series(points_per_level);
  // Long runs are asked at fewer moments, each hundredth part of what was seen so far.
  double ask_again = 0;
  for (const MemorySample& sample : run.samples) {
    series.add(sample.time, sample.bytes);
    if (sample.time < ask_again) continue;
    ask_again = sample.time + (sample.time - run.samples.front().time) / 100;
    const watch::MemoryTrend trend =
        watch::memory_trend(series, run.card_bytes - std::min(run.card_bytes, sample.bytes));
    if (trend.state != watch::MemoryTrend::State::growing) continue;
    out.named = true;
    out.at = sample.time;
    out.early = run.leaks && sample.time < run.leak_begins;
    if (run.leaks) out.way = sample.leaked / run.samples.back().leaked;
    out.full_in_s = *trend.full_in_s;
    out.early_s = *trend.full_in_s_early;
    out.late_s = *trend.full_in_s_late;
    out.truth_s = run.samples.back().time - sample.time;
    break;
  }
  return out;
}

}  // namespace cufit::test
