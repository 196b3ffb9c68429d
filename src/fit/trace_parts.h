// SPDX-License-Identifier: Apache-2.0
// What a trace tells of after its last step. One made for plans: two micro-batches, of which the
// first is not followed by the optimizer's step, so that gradients live on while the second runs
// forward. Any other: what the program does before it trains on, such as validation, which may
// depend on more than the batch size of the steps.
#pragma once

#include <optional>

#include "formats/model/trace_events.h"

namespace cufit::fit {

// The trace as it would be without plans: up to where micro-batches begin. The same trace where it
// has none.
formats::TraceEvents without_micro_batches(const formats::TraceEvents& trace);

// The trace up to where what follows the steps begins, be it micro-batches or validation.
formats::TraceEvents steps_alone(const formats::TraceEvents& trace);

// Whether it goes on behind them, other than for plans.
bool goes_on(const formats::TraceEvents& trace);

// The same operator, module, line, phase and stream. Texts and sites are numbered as they came.
bool same_site(const formats::TraceEvents& a, uint32_t of_a, const formats::TraceEvents& b,
               uint32_t of_b);

// Whether it tells of a whole step over two micro-batches, with gradients kept between them.
bool has_micro_batches(const formats::TraceEvents& trace);

}  // namespace cufit::fit
