// SPDX-License-Identifier: Apache-2.0
// All traces of one program that a question goes to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/answer/warning.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

// The program traced with some of its switches on.
struct VariantTraces {
  std::vector<std::string> switches;  // as of PlanProgram
  std::vector<formats::TraceEvents> traces;
};

struct Traces {
  std::vector<formats::TraceEvents> plain;  // each of another batch size
  std::optional<uint64_t> own_batch;        // the program's own
  std::vector<Warning> warnings;            // what the tracer said, why a trace is missing
  // For plans: `plain` with the step over two micro-batches that follows, and the variants.
  std::vector<formats::TraceEvents> whole;
  std::vector<VariantTraces> variants;
};

// The batch sizes at which to trace a program beside the one of its first trace. Programs often do
// other things with a batch of one: two more then.
std::vector<uint64_t> other_batches(uint64_t first);

// The batch size of `first`, a trace at an unknown one, by the storages of its batches beside those
// of `second`, at `batch`. Nullopt where they are not in proportion.
std::optional<uint64_t> batch_by_inputs(const formats::TraceEvents& first,
                                        const formats::TraceEvents& second, uint64_t batch);

// Whether a backward pass runs. A program that accumulates batch / micro_batch times has none where
// that is 0.
bool computes_gradients(const formats::TraceEvents& events);

// Whether what is trained on follows a number that is `own` in the first trace and `batch` in the
// second: their batches, or where those do not tell (made on the GPU) most of what is neither weight
// nor state, are in that proportion. A DataLoader that shows another share of it in each says no.
bool follows_number(const formats::TraceEvents& first, uint64_t own,
                    const formats::TraceEvents& second, uint64_t batch);

// One that was kept: of a variant where it says so, else of the program as it is.
void add_trace(Traces& traces, formats::TraceEvents events);

// What answers without plans is what a trace without plans tells: `plain` loses what was traced for
// them, which `whole` keeps where `plans` are asked for.
void keep_micro_batches_apart(Traces& traces, bool plans);

}  // namespace cufit::fit
