// SPDX-License-Identifier: Apache-2.0
// Traces laid over each other as they are. align() of step_program.h asks for them over batches that
// can be compared, and for none that falls with the batch size.
#pragma once

#include <span>

#include "fit/step_program.h"

namespace cufit::fit {

// As align(): `differences` says where they part.
Result<StepProgram> align_as_traced(std::span<const formats::TraceEvents> traces);

}  // namespace cufit::fit
