// SPDX-License-Identifier: Apache-2.0
// Which program answers for which batch size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fit/answer/warning.h"
#include "fit/step_program.h"

namespace cufit::fit {

// The traces as programs. Those of several batch sizes answer for any; where the trace of a batch
// of one goes its own way, it answers for itself.
struct TracedPrograms {
  StepProgram many;
  std::optional<StepProgram> one;
  std::optional<uint64_t> own_batch;  // the program's own batch size
  bool batch_known = true;

  const StepProgram& at(uint64_t batch) const { return one && one->is_traced(batch) ? *one : many; }
};

// `traces`: at least one, each of another batch size; a single one may not say of which. Warnings
// say where they part and what they leave open. Errors as of align().
Result<TracedPrograms> traced_programs(std::vector<formats::TraceEvents> traces,
                                       std::optional<uint64_t> own_batch,
                                       std::vector<Warning>& warnings);

}  // namespace cufit::fit
