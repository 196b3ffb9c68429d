// SPDX-License-Identifier: Apache-2.0
// What one or two real recordings of a program tell of other batch sizes. One recording cannot
// tell what is constant from what is in proportion to the batch size: what no rule proves is taken
// at its likeliest for the point value, and at its worst for the upper value, which is in
// proportion above the recorded batch size and unchanged below it. Two recordings at different
// batch sizes prove the size of everything that is in both. All sizes in bytes.
//
// What grows faster than the batch size (a batch by batch matrix) is seen by two recordings only
// as a doubt, by one not at all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fit/search.h"
#include "formats/model/batch_growth.h"

namespace cufit::fit {

struct Recorded {
  const formats::TraceEvents* events = nullptr;  // with the fact `batch`
  std::span<const formats::BatchGrowth> growth;  // by storage
  bool has_workspaces = false;                   // of convolutions
};

struct RecordedPrograms {
  std::vector<uint64_t> batches;  // recorded, ascending
  uint64_t base = 0;              // the last of them, whose events are replayed
  StepProgram point;
  StepProgram upper_above, upper_below;  // for batch sizes from `base` on, and below it
  StepProgram lower_above, lower_below;
  size_t storages = 0;  // of the steps of `base`
  size_t proved = 0;    // of them, whose size is proved
  // The most that storages which only the other recording has held at once; part of every upper
  // value.
  uint64_t only_other = 0;
  // What the recorded run reserved beyond the replay of it (compare_with_recording); the same.
  uint64_t missed = 0;
};

// One recording or two of different batch sizes. Error{unsupported} where two tell of different
// programs.
Result<RecordedPrograms> recorded_programs(std::span<const Recorded> recordings);

// Replays the last recording under the settings that it was made with and returns what that
// reserves; what is missing of `peak_reserved`, the recorded one, is added to the upper values.
Result<uint64_t> compare_with_recording(RecordedPrograms& programs, uint64_t peak_reserved,
                                        const Setup& setup);

// As predict() of a traced program; the point value and the breakdown are the likeliest, fits()
// goes by the upper values.
Result<Prediction> predict(const RecordedPrograms& programs, uint64_t batch, const Setup& setup);
// What is reserved at least: what would be allocated with all that no rule proves at its best.
Result<uint64_t> lowest_reserved(const RecordedPrograms& programs, uint64_t batch,
                                 const Setup& setup);

std::vector<CurvePoint> curve(const RecordedPrograms& programs, std::span<const uint64_t> batches,
                              const Setup& setup);
// Looks no further than `k_furthest` times what was recorded.
constexpr uint64_t k_furthest = 64;
LargestBatch largest_batch(const RecordedPrograms& programs, const Setup& setup);

}  // namespace cufit::fit
