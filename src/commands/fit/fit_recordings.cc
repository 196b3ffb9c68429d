// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_recordings.h"

#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/mem/mem_snapshot.h"
#include "fit/answer/recorded_answer.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_recordings = 2;
constexpr uint64_t k_recorded_most_batch = 1u << 20;

Result<uint64_t> recorded_batch(const std::string& text) {
  const std::optional<uint64_t> batch = parse_uint(text);
  if (!batch || *batch == 0 || *batch > k_recorded_most_batch)
    return fail(Code::usage,
                format("`--batch-was {}`: a number from 1 to {}", text, k_recorded_most_batch));
  return *batch;
}

// A recording, and the device of it that did most.
struct FitSnapshot {
  memory::Snapshot snapshot;
  uint32_t device = 0;
};
Result<FitSnapshot> open_fit_snapshot(const Context& context, const std::string& path) {
  CUFIT_TRY(snapshot, load_snapshot(context, path));
  CUFIT_TRY(device, chosen_device(std::nullopt, snapshot));
  return FitSnapshot{std::move(snapshot), device};
}

// The recordings alone: what starts a program does not go with them.
Result<std::vector<fit::RecordedRun>> read_recorded_runs(const Context& context,
                                                         const FitRecordingsRequest& recordings,
                                                         const FitProgramRequest& program) {
  const std::vector<std::string>& files = recordings.from;
  const std::vector<std::string>& sizes = recordings.batch_was;
  if (files.size() != sizes.size() || files.size() > k_most_recordings)
    return fail(Code::usage,
                "`--from SNAPSHOT` goes with `--batch-was N`, the batch size at which it was "
                "recorded; both once, or twice");
  for (const auto& [option, given] :
       {std::pair("batch-arg", program.batch_arg.has_value()),
        std::pair("steps", program.steps.has_value()), std::pair("keep", program.keep.has_value())})
    if (given)
      return fail(Code::usage,
                  format("`--from` alone starts no program: `--{}` does not go with it", option));
  std::vector<fit::RecordedRun> out;
  for (size_t i = 0; i < files.size(); ++i) {
    CUFIT_TRY(batch, recorded_batch(sizes[i]));
    CUFIT_TRY(opened, open_fit_snapshot(context, files[i]));
    CUFIT_TRY(run, fit::recorded_run(opened.snapshot, opened.device, batch, files[i]));
    out.push_back(std::move(run));
  }
  return out;
}

}  // namespace

Result<RecordingAt> recording_beside_program(const FitRecordingsRequest& recordings) {
  if (recordings.batch_was.size() != 1 || recordings.from.size() != 1)
    return fail(Code::usage,
                "beside a program there is one `--from SNAPSHOT` with one `--batch-was N`");
  CUFIT_TRY(batch, recorded_batch(recordings.batch_was[0]));
  return RecordingAt{recordings.from[0], batch};
}

Result<fit::MeasuredRun> read_measured_run(const Context& context, const RecordingAt& recording) {
  CUFIT_TRY(opened, open_fit_snapshot(context, recording.path));
  return fit::measured_run(opened.snapshot, opened.device, recording.batch, recording.path);
}

Result<fit::Answer> answer_from_recordings(const Context& context,
                                           const FitRecordingsRequest& recordings,
                                           const FitProgramRequest& program,
                                           const fit::Question& question) {
  CUFIT_TRY(runs, read_recorded_runs(context, recordings, program));
  return fit::recorded_answer(std::move(runs), question, context.knowledge);
}

std::string recordings_as_typed(const fit::RecordedFigures& recorded) {
  std::vector<std::string> names;
  for (const fit::Recording& one : recorded.recordings) names.push_back(shell_word(one.file));
  return join(names, " ");
}

}  // namespace cufit::commands
