// SPDX-License-Identifier: Apache-2.0
// What one trace is good for: why a program could not be traced, and what the tracer had to assume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/answer/warning.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

// Why a program could not be traced. Texts: "fit.stop.<kind>", "fit.next.<next>".
struct TraceFailure {
  // "no_torch", "no_step", "failed", "cut_off", "no_storage", "timed_out"
  std::string kind;
  std::string limit;   // of "timed_out": "time", "idle", "operators"
  std::string next;    // what to do instead
  std::string detail;  // what the program said last: an exception, or its last line
  std::string source;  // where; empty: not known
  std::string program;
  int exit_code = 0;
  std::optional<uint64_t> batch;  // that was being traced
  // Learned until then.
  std::string torch;              // its version; empty: it was not imported
  std::optional<uint64_t> found;  // the program's own batch size
  uint64_t storages = 0, peak_allocated = 0, steps = 0;
  std::vector<Warning> warnings;
};

// Training steps that ended.
uint64_t ended_steps(const formats::TraceEvents& events);

// The tracer's notes as warnings: those that say the same of several lines are one, its source the
// lines.
std::vector<Warning> trace_warnings(const formats::TraceEvents& events);

// nullopt where the trace can answer: the wanted steps were seen, the program ended by itself after
// a step, or it failed after two (the second is like all that follow; a warning says so).
// `events` null: no Python wrote any. `said`: the program's last words.
std::optional<TraceFailure> trace_failure(const formats::TraceEvents* events, int exit_code,
                                          const std::string& said, std::vector<Warning>& warnings);

// Of the program that builds and trains a model (python/cufit_model): what stopped it. `events`
// null: it wrote none.
void explain_model_failure(const formats::TraceEvents* events, TraceFailure& failure);

}  // namespace cufit::fit
