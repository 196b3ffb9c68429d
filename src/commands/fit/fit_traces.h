// SPDX-License-Identifier: Apache-2.0
// Where `cufit fit` has its traces from: the user's program, run under the tracer (fit_tracing.h),
// or event files that were kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "commands/fit/batch_inferred.h"
#include "commands/context.h"
#include "commands/fit/fit_model.h"
#include "commands/fit/fit_program.h"
#include "commands/fit/fit_ranks.h"
#include "fit/answer/trace_failure.h"
#include "fit/answer/traces.h"

namespace cufit::commands {

struct FitTraces {
  std::string program;                       // as typed, or the names of the files
  fit::Traces traces;                        // of the program as it is there is one at least
  std::vector<fit::RankTraces> ranks;        // others of the same group
  std::vector<fit::WorldAnswer> worlds;      // ascending; empty: one number of ranks was asked for
  std::optional<fit::TraceFailure> failure;  // then there are none
  std::optional<InferredBatch> inferred;     // that the traces were found to follow
};

// What the tracer is told of cards (fit/answer/cards.h).
struct TracedGpu {
  std::optional<ComputeCapability> cc;
  std::string pretended;      // "NVIDIA H200,9.0,150110011392"
  std::string cudnn_devices;  // those for which cuDNN is asked
  bool all_cards = false;     // `--gpu all`
};

// `batch`: that was asked for; nullopt: the program's own. `worlds`: what is made of traces at
// several numbers of ranks. Error{usage} for options that do not go
// together, Error{cancelled} where a signal asked cufit to end.
Result<FitTraces> fit_traces(const Context& context, const FitProgramRequest& program,
                             const FitModelRequest& model, std::optional<uint64_t> batch,
                             const TracedGpu& gpu, const WorldsAsked& worlds = {});

}  // namespace cufit::commands
