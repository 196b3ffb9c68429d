// SPDX-License-Identifier: Apache-2.0
// A StepProgram of traces that tell of the same events in the same order. Used by step_program.cc,
// which says whether they do.
#pragma once

#include <cstdint>
#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

struct Traced {
  const formats::TraceEvents* trace = nullptr;
  uint64_t batch = 0;
  size_t given = 0;  // of the list given to align
};

// At least one, by ascending batch size. `cudnn` is left to the caller.
StepProgram build_step_program(std::span<const Traced> traces);

}  // namespace cufit::fit
