// SPDX-License-Identifier: Apache-2.0
// Runs of a program whose batch size only an option's name tells (batch_inferred.h). Used by
// fit_tracing.cc, which says when.
#pragma once

#include <cstdint>
#include <optional>

#include "commands/fit/batch_inferred.h"
#include "commands/fit/trace_runs.h"

namespace cufit::commands {

class GuessedRuns : protected TraceRuns {
 protected:
  using TraceRuns::TraceRuns;

  // Behind the first trace: one more, with another number for the option of `guess_`, which is then
  // tried. Where what is trained on follows it, the option is taken for that of `--batch-arg`, and
  // its number in the command is returned. Nullopt: it does not, and all is as it was before.
  Result<std::optional<uint64_t>> trace_guess();

  std::optional<InferredBatch> guess_;  // not tried yet

 private:
  Result<std::optional<uint64_t>> take_guess(const InferredBatch& guess, uint64_t batch);
  // Kept traces that would answer otherwise, read again.
  void forget_files(size_t from);
};

}  // namespace cufit::commands
