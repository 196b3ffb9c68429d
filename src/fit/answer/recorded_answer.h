// SPDX-License-Identifier: Apache-2.0
// The answer from one real recording or two of a program at different batch sizes
// (recorded_program.h).
#pragma once

#include <string>
#include <vector>

#include "fit/answer/answer.h"
#include "memory/analysis/recorded_trace.h"

namespace cufit::fit {

// One device of a recording, as far as it is needed.
struct RecordedRun {
  Recording about;
  analysis::RecordedTrace trace;
  memory::VersionProfile version;
  std::string settings;  // in PyTorch's form
  memory::Settings recorded_settings;
  bool settings_unread = false;
};

// `batch`: at which it was recorded. Errors, in `file`: as of verify_recording() and
// recorded_trace().
Result<RecordedRun> recorded_run(const memory::Snapshot& snapshot, uint32_t device, uint64_t batch,
                                 const std::string& file);

// At least one run. Errors as of recorded_programs() and predict(), Error{usage} for settings that
// this torch does not know. `question.plans` is not looked at.
Result<Answer> recorded_answer(std::vector<RecordedRun> runs, const Question& question,
                               const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
