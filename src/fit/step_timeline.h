// SPDX-License-Identifier: Apache-2.0
// Memory over the events of a traced program at one batch size, thinned for a picture. All sizes in
// bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/prediction.h"

namespace cufit::fit {

// A run of events, as long as its neighbours'.
struct TimelinePoint {
  uint64_t allocated = 0;  // the most among them
  uint64_t reserved = 0;   // the same
};

// Points [first, end) of one phase; step 0 is what comes before the first.
struct TimelineRange {
  uint32_t first = 0, end = 0;
  uint32_t step = 0;
  TracePhase phase = TracePhase::setup;
};

struct StepTimeline {
  uint32_t events = 0;
  uint32_t events_per_point = 1;
  std::vector<TimelinePoint> points;
  std::vector<TimelineRange> ranges;  // in order, without gaps
  uint32_t peak = 0;                  // the first point at which most is allocated
};

// At most `most_points` of them, at the point values. As predict(): Error{unsupported} for a batch
// size that the traces do not answer for. Where memory runs out the series ends.
Result<StepTimeline> step_timeline(const StepProgram& program, uint64_t batch, const Setup& setup,
                                   uint32_t most_points = 600);

}  // namespace cufit::fit
