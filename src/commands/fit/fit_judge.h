// SPDX-License-Identifier: Apache-2.0
// What one trace is good for: why a program could not be traced, and what the tracer had to assume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/model/trace_events.h"
#include "report/fit.h"

namespace cufit::commands {

// Training steps that ended.
uint64_t steps_of(const formats::TraceEvents& events);

// The tracer's notes as warnings: those that say the same of several lines are one, its source the
// lines.
std::vector<report::FitWarning> warnings_of(const formats::TraceEvents& events);

// nullopt where the trace can answer: the wanted steps were seen, the program ended by itself after
// a step, or it failed after two (the second is like all that follow; a warning says so).
// `events` null: no Python wrote any. `said`: the program's last words.
std::optional<report::FitFailure> failure_of(const formats::TraceEvents* events, int exit_code,
                                             const std::string& said,
                                             std::vector<report::FitWarning>& warnings);

}  // namespace cufit::commands
