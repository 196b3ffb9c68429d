// SPDX-License-Identifier: Apache-2.0
// `--from SNAPSHOT --batch-was N` of `cufit fit`: other batch sizes from one real recording or two,
// or one beside a program, to which its prediction is held.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/fit/fit_traces.h"
#include "fit/answer/answer.h"
#include "fit/answer/calibration.h"

namespace cufit::commands {

struct FitRecordingsRequest {
  std::vector<std::string> from;  // recordings, each with its batch size
  std::vector<std::string> batch_was;
};

struct RecordingAt {
  std::string path;
  uint64_t batch = 0;
};

// Error{usage} where it is not one recording with one batch size.
Result<RecordingAt> recording_beside_program(const FitRecordingsRequest& recordings);
Result<fit::MeasuredRun> read_measured_run(const Context& context, const RecordingAt& recording);

// Recordings answer, not a program. `program`: of what starts one nothing goes with them,
// Error{usage}.
Result<fit::Answer> answer_from_recordings(const Context& context,
                                           const FitRecordingsRequest& recordings,
                                           const FitProgramRequest& program,
                                           const fit::Question& question);
// Their files, for a report.
std::string recordings_as_typed(const fit::RecordedFigures& recorded);

}  // namespace cufit::commands
