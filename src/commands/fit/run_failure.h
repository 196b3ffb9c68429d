// SPDX-License-Identifier: Apache-2.0
// What a run of the tracer says of its failure beside what its trace does.
#pragma once

#include "fit/answer/trace_failure.h"
#include "host/python/traced_run.h"

namespace cufit::commands {

// `events`: null where there are none. A run that was ended says where it was.
void explain_failure(const host::TracedRun& run, const host::TraceOptions& options,
                     const formats::TraceEvents* events, fit::TraceFailure& failure);

}  // namespace cufit::commands
