// SPDX-License-Identifier: Apache-2.0
// `cufit fit --from SNAPSHOT --batch-was N -- python train.py`: how far the prediction was off
// where a real run tells, applied to what is reserved at other batch sizes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "fit/recorded_program.h"
#include "report/fit.h"

namespace cufit::commands {

// Reserved sizes times recorded / predicted. The upper value is never lowered by it: one run that
// took less proves nothing of the next.
struct Calibration {
  uint64_t recorded = 1, predicted = 1;

  uint64_t scaled(uint64_t bytes) const;
  // What a card of `usable` bytes leaves to a run as predicted.
  uint64_t capacity(uint64_t usable) const;
  void apply(fit::Prediction& prediction) const;
  void apply(fit::CurvePoint& point) const;
};

// Whether a recording stands beside a program.
bool calibrates(const Arguments& arguments);

// nullopt where the recording is too far from what is predicted to be of the same program; either
// way a warning says what was found. `program`: what answers for the recorded batch size.
Result<std::optional<Calibration>> calibration(const Arguments& arguments,
                                               const fit::StepProgram& program,
                                               const fit::Setup& setup,
                                               std::vector<report::FitWarning>& warnings);
// --batch-was; Error{usage} where it is not given once.
Result<uint64_t> calibrated_batch(const Arguments& arguments);

}  // namespace cufit::commands
