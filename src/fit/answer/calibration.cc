// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/calibration.h"

#include <algorithm>

#include "base/format.h"
#include "memory/replay/verified_recording.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_most_apart_percent = 25;

double ratio_of(const Calibration& calibration) {
  return static_cast<double>(calibration.recorded) / static_cast<double>(calibration.predicted);
}

}  // namespace

Result<MeasuredRun> measured_run(const memory::Snapshot& snapshot, uint32_t device, uint64_t batch,
                                 const std::string& file) {
  Result<memory::VerifiedRecording> verified =
      memory::verify_recording(snapshot, device, std::nullopt);
  if (!verified) return std::move(verified.error()).in(file);
  return MeasuredRun{batch, verified->program->recorded_peak, verified->recording.settings,
                     memory::ran_out(snapshot, device)};
}

uint64_t Calibration::scaled(uint64_t bytes) const {
  return static_cast<uint64_t>(static_cast<double>(bytes) * ratio_of(*this));
}

uint64_t Calibration::capacity(uint64_t usable) const {
  if (recorded <= predicted) return usable;
  return static_cast<uint64_t>(static_cast<double>(usable) / ratio_of(*this));
}

void Calibration::apply(Prediction& prediction) const {
  prediction.peak_reserved = std::max(scaled(prediction.peak_reserved), prediction.peak_allocated);
  prediction.peak_reserved_upper =
      std::max(scaled(prediction.peak_reserved_upper), prediction.peak_reserved_upper);
}

void Calibration::apply(CurvePoint& point) const {
  point.peak_reserved = std::max(scaled(point.peak_reserved), point.peak_allocated);
  point.peak_reserved_upper =
      std::max(scaled(point.peak_reserved_upper), point.peak_reserved_upper);
}

Result<std::optional<Calibration>> calibration(const StepProgram& program, const Setup& setup,
                                               const MeasuredRun& run,
                                               std::vector<Warning>& warnings) {
  // As it was recorded, whatever is asked now.
  Setup as_recorded = setup;
  as_recorded.settings = run.settings;
  CUFIT_TRY(predicted, predict(program, run.batch, as_recorded));
  const Calibration found{run.peak_reserved, predicted.peak_reserved};
  const uint64_t apart = found.recorded > found.predicted ? found.recorded - found.predicted
                                                          : found.predicted - found.recorded;
  const bool near =
      found.recorded != 0 && apart <= found.predicted / 100 * k_most_apart_percent && !run.ran_out;
  warnings.push_back(
      {near ? "calibrated" : "not_calibrated",
       {{"batch", std::to_string(run.batch)}, {"ratio", format("{:.3f}", ratio_of(found))}},
       "",
       {{"recorded", found.recorded}, {"predicted", found.predicted}}});
  if (!near) return std::optional<Calibration>();
  return std::optional(found);
}

}  // namespace cufit::fit
