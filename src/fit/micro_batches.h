// SPDX-License-Identifier: Apache-2.0
// A trace made for plans goes on after its last step: two micro-batches, of which the first is not
// followed by the optimizer's step, so that gradients live on while the second runs forward.
#pragma once

#include <optional>

#include "formats/trace_events.h"

namespace cufit::fit {

// The trace as it would be without plans: up to where micro-batches begin. The same trace where it
// has none.
formats::TraceEvents without_micro_batches(const formats::TraceEvents& trace);

// Whether it tells of a whole step over two micro-batches, with gradients kept between them.
bool has_micro_batches(const formats::TraceEvents& trace);

}  // namespace cufit::fit
