// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_calibration.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/settings.h"
#include "report/terminal/mem_words.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_most_apart_percent = 25;
constexpr uint64_t k_fit_calibration_most_batch = 1u << 20;

double ratio(const Calibration& of) {
  return static_cast<double>(of.recorded) / static_cast<double>(of.predicted);
}

}  // namespace

uint64_t Calibration::scaled(uint64_t bytes) const {
  return static_cast<uint64_t>(static_cast<double>(bytes) * ratio(*this));
}

uint64_t Calibration::capacity(uint64_t usable) const {
  if (recorded <= predicted) return usable;
  return static_cast<uint64_t>(static_cast<double>(usable) / ratio(*this));
}

void Calibration::apply(fit::Prediction& prediction) const {
  prediction.peak_reserved = std::max(scaled(prediction.peak_reserved), prediction.peak_allocated);
  prediction.peak_reserved_upper =
      std::max(scaled(prediction.peak_reserved_upper), prediction.peak_reserved_upper);
}

void Calibration::apply(fit::CurvePoint& point) const {
  point.peak_reserved = std::max(scaled(point.peak_reserved), point.peak_allocated);
  point.peak_reserved_upper =
      std::max(scaled(point.peak_reserved_upper), point.peak_reserved_upper);
}

bool calibrates(const Arguments& arguments) {
  return arguments.has("from") && (!arguments.all("COMMAND").empty() || arguments.has("function") ||
                                   arguments.has("events"));
}

Result<uint64_t> calibrated_batch(const Arguments& arguments) {
  const std::vector<std::string> sizes = arguments.all("batch-was");
  if (sizes.size() != 1 || arguments.all("from").size() != 1)
    return fail(Code::usage,
                "beside a program there is one `--from SNAPSHOT` with one `--batch-was N`");
  const std::optional<uint64_t> batch = parse_uint(sizes[0]);
  if (!batch || *batch == 0 || *batch > k_fit_calibration_most_batch)
    return fail(Code::usage, format("`--batch-was {}`: a number from 1 to {}", sizes[0],
                                    k_fit_calibration_most_batch));
  return *batch;
}

Result<std::optional<Calibration>> calibration(const Arguments& arguments,
                                               const fit::StepProgram& program,
                                               const fit::Setup& setup,
                                               std::vector<report::FitWarning>& warnings) {
  CUFIT_TRY(batch, calibrated_batch(arguments));
  const std::string path = arguments.get("from");
  CUFIT_TRY(torch, chosen_torch(std::nullopt, knowledge::Knowledge::builtin()));
  CUFIT_TRY(snapshot, load_snapshot(legacy_context(), path));
  CUFIT_TRY(device, chosen_device(std::nullopt, snapshot));
  Result<memory::VerifiedRecording> verified = memory::verify_recording(snapshot, device, torch);
  if (!verified) return std::move(verified.error()).in(path);
  // As it was recorded, whatever is asked now.
  fit::Setup as_recorded = setup;
  as_recorded.settings = verified->recording.settings;
  CUFIT_TRY(predicted, fit::predict(program, batch, as_recorded));
  const Calibration found{verified->program->recorded_peak, predicted.peak_reserved};
  const std::map<std::string, std::string> args = {{"batch", std::to_string(batch)},
                                                   {"recorded", report::gib(found.recorded)},
                                                   {"predicted", report::gib(found.predicted)},
                                                   {"ratio", format("{:.3f}", ratio(found))}};
  const uint64_t apart = found.recorded > found.predicted ? found.recorded - found.predicted
                                                          : found.predicted - found.recorded;
  const bool near = found.recorded != 0 && apart <= found.predicted / 100 * k_most_apart_percent &&
                    !memory::ran_out(snapshot, device);
  warnings.push_back({near ? "calibrated" : "not_calibrated", args, ""});
  if (!near) return std::optional<Calibration>();
  return std::optional(found);
}

}  // namespace cufit::commands
