// SPDX-License-Identifier: Apache-2.0
// A real run of the program beside its traces: how far the prediction was off at its batch size,
// applied to what is reserved at others. All sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/answer/warning.h"
#include "fit/search.h"
#include "memory/snapshot/snapshot.h"

namespace cufit::fit {

// What one device of a recording tells of such a run.
struct MeasuredRun {
  uint64_t batch = 0;          // at which it was recorded
  uint64_t peak_reserved = 0;  // recorded
  memory::Settings settings;   // that it was recorded with
  bool ran_out = false;        // of memory
};

// Error{..} in `file` for a device that holds no recording that can be replayed.
Result<MeasuredRun> measured_run(const memory::Snapshot& snapshot, uint32_t device, uint64_t batch,
                                 const std::string& file);

// Reserved sizes times recorded / predicted. The upper value is never lowered by it: one run that
// took less proves nothing of the next.
struct Calibration {
  uint64_t recorded = 1, predicted = 1;

  uint64_t scaled(uint64_t bytes) const;
  // What a card of `usable` bytes leaves to a run as predicted.
  uint64_t capacity(uint64_t usable) const;
  void apply(Prediction& prediction) const;
  void apply(CurvePoint& point) const;
};

// nullopt where the run is too far from what is predicted to be of the same program; either way a
// warning says what was found. `program`: what answers for the recorded batch size; `setup`: of the
// question, whose settings the recorded ones replace. Errors as of predict().
Result<std::optional<Calibration>> calibration(const StepProgram& program, const Setup& setup,
                                               const MeasuredRun& run,
                                               std::vector<Warning>& warnings);

}  // namespace cufit::fit
