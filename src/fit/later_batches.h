// SPDX-License-Identifier: Apache-2.0
// Steps over batches that the trace fetched and did not train on (steps/later_batches.py of the
// tracer). Where the sizes of batches differ from step to step, what is reserved grows with each
// that no kept block serves, over many more steps than are traced. Used by trace_alignment.cc.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fit/traced_steps.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

struct LaterSteps {
  std::vector<formats::TraceEvents> traces;  // in the order given
  uint32_t steps = 0;                        // more than were traced, in each
};

// The same traces without what they tell of batches, and, where the sizes of all traced steps
// follow those of their batches, with the steps behind the last traced one that the later batches
// make: each the events of that one with the sizes that its own batches give. What they follow is
// looked for once.
class LaterBatches {
 public:
  explicit LaterBatches(std::span<const formats::TraceEvents> traces);  // they outlive it
  LaterBatches(const LaterBatches&) = delete;
  LaterBatches& operator=(const LaterBatches&) = delete;

  bool tells() const;              // any trace of its batches
  bool tells(size_t trace) const;  // this one
  // All with as many more steps as the one that has fewest.
  LaterSteps together();
  // One with all of its own.
  uint32_t own_steps(size_t trace) const;
  formats::TraceEvents alone(size_t trace);

 private:
  std::vector<TracedSteps> steps_;
  std::vector<size_t> more_;  // by trace
};

// A step of one trace need not have the batch that the same step of another has: buckets come in
// another order, the last batch of one is smaller. Where sizes follow those of batches, steps
// included, over all traces together: the traces with every step over the batches of the first one
// (by batch size), at as many samples as each was traced with. Nothing where they have these
// already, or where sizes follow nothing.
std::optional<LaterSteps> with_comparable_batches(std::span<const formats::TraceEvents> traces);

}  // namespace cufit::fit
