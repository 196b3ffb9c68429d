// SPDX-License-Identifier: Apache-2.0
// Where `cufit fit` has its traces from: the user's program, run under the tracer at two batch
// sizes or three, or event files that were kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "formats/model/trace_events.h"
#include "report/fit.h"

namespace cufit::commands {

// The program traced with some of its switches on.
struct VariantTraces {
  std::vector<std::string> switches;  // as of fit::PlanProgram
  std::vector<formats::TraceEvents> traces;
};

struct FitTraces {
  std::string program;                        // as typed, or the names of the files
  std::vector<formats::TraceEvents> traces;   // each of another batch size; the first always there
  std::optional<uint64_t> found;              // the program's own batch size
  std::vector<report::FitWarning> warnings;   // what the tracer said, why a trace is missing
  std::optional<report::FitFailure> failure;  // then there are no traces
  // With --plan: `traces` with the step over two micro-batches that follows, and the variants.
  std::vector<formats::TraceEvents> whole;
  std::vector<VariantTraces> variants;
};

struct TracedGpu {
  std::string card;   // "NVIDIA H200,9.0,150110011392", the one to pretend
  std::string cudnn;  // those for which cuDNN is asked (fit_gpus.h)
};

// Error{usage} for options that do not
// go together, Error{cancelled} where a signal asked cufit to end.
Result<FitTraces> fit_traces(const Arguments& arguments, const TracedGpu& gpu);

}  // namespace cufit::commands
