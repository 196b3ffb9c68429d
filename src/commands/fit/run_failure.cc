// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/run_failure.h"

namespace cufit::commands {

void explain_failure(const host::TracedRun& run, const host::TraceOptions& options,
                     const formats::TraceEvents* events, fit::TraceFailure& failure) {
  if (run.timed_out) {
    failure.kind = "timed_out";
    failure.limit = options.seconds > 0 ? "time" : "idle";
    failure.next = "timeout";
    failure.detail.clear();
    failure.source = run.progress.source;
  }
  if (!options.model.empty()) fit::explain_model_failure(events, failure);
}

}  // namespace cufit::commands
