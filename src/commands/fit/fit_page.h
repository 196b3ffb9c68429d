// SPDX-License-Identifier: Apache-2.0
// `--html FILE` of `cufit fit`.
#pragma once

#include "commands/command.h"
#include "report/fit.h"

namespace cufit::commands {

// Nothing without the option. `program` is what answers for the batch size of `view`, `setup`
// without a bound.
Result<void> write_fit_page(const Arguments& arguments, const report::FitView& view,
                            const fit::StepProgram& program, const fit::Setup& setup);

}  // namespace cufit::commands
