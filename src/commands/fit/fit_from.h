// SPDX-License-Identifier: Apache-2.0
// `cufit fit --from SNAPSHOT --batch-was N`: other batch sizes from one real recording or two.
#pragma once

#include <optional>
#include <vector>

#include "commands/command.h"
#include "report/fit.h"

namespace cufit::commands {

// Whether recordings are to answer, not a program.
bool from_recordings(const Arguments& arguments);

// `card`: whose context and libraries count where there is no bound. `asked`: --batch.
int run_fit_from(const Arguments& arguments, std::vector<report::FitGpu> gpus,
                 const report::FitGpu& card, std::optional<uint64_t> asked);

}  // namespace cufit::commands
