// SPDX-License-Identifier: Apache-2.0
// A program run under the tracer (host/python/traced_run.h) at two batch sizes or three, and for
// plans once more with each of its switches on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/context.h"
#include "commands/fit/batch_argument.h"
#include "commands/fit/fit_ranks.h"
#include "commands/fit/fit_traces.h"
#include "host/python/traced_run.h"

namespace cufit::commands {

// The options as each run of the program needs them.
struct TracingPlan {
  std::string program;               // as typed
  host::TraceOptions run;            // but for command, batch size and event file
  std::vector<std::string> command;  // into which the batch size is still to be written
  std::optional<BatchArgument> argument;
  std::string folder;        // of --keep; empty: none
  bool keeps_world = false;  // its files are named by the number of ranks, too
  RanksWanted ranks;
  // Given the first trace; false: the program is not traced at other batch sizes. Null: it is.
  std::function<Result<bool>(const formats::TraceEvents&)> after_first;
  NextBatch next_batch;  // asked behind the usual traces
  NextBatch only_batch;  // at which variants are traced; nullopt: at all
  bool plans = false;
  std::optional<ComputeCapability> traced_for;  // of the card that is pretended
};

// fit_tracing_plan.cc. Error{usage} for values that are no numbers or out of their range and for
// options that do not go together, and what fit_model() says of a model.
Result<TracingPlan> tracing_plan(const host::Host& files, const FitProgramRequest& program,
                                 const FitModelRequest& model, const TracedGpu& gpu);

// One rank. `batch`: that was asked for. Progress on stderr. Error{cancelled} where a signal asked cufit to
// end, Error{usage} where the program cannot be given a batch size as asked.
Result<FitTraces> trace_program(const Context& context, TracingPlan plan,
                                std::optional<uint64_t> batch, host::Interrupts& interrupts);

// All ranks that the plan wants, at all numbers of ranks. Error{usage}, too, where that had no
// effect on the program.
Result<FitTraces> trace_ranks(const Context& context, TracingPlan plan,
                              std::optional<uint64_t> batch, const WorldsAsked& asked);

}  // namespace cufit::commands
