// SPDX-License-Identifier: Apache-2.0
// Where the training steps of a trace are. A step is one optimizer step with all micro-batches
// before it; it ends with the zero_grad that follows at once, or with the optimizer's step if the
// program clears gradients later. Three kinds of witnesses, the first that speaks is believed:
//   annotations  "Optimizer.step#AdamW.step", which torch 2.5 on writes beside the trace
//   frames       stacks inside an optimizer's step or zero_grad; before the first optimizer step,
//                a forward pass whose results are kept for a backward pass: that is step 0
//   frees        the gradients: as many allocations of sizes of parameters, made one by one and
//                freed in one go, over and over
// If none does, the steps are unknown; nothing is guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/analysis/lifetimes.h"
#include "memory/analysis/step_marks.h"

namespace cufit::analysis {

enum class StepsKnownBy : uint8_t { unknown, annotations, frames, frees };
const char* to_string(StepsKnownBy known_by);

struct Steps {
  // begins[i]: the event at which step first + i begins. The last one may be unfinished. What comes
  // before begins[0] is set-up: the model goes to the device and nothing is computed yet. Work that
  // comes before the first optimizer step (a warm-up, a captured graph) counts to step 0.
  std::vector<uint32_t> begins;
  // Steps that were over when the trace began, as far as annotations tell (they outlive the events
  // of a ring that overflowed). 0 if recording began late: then steps count from there.
  uint32_t first = 0;
  uint32_t finished = 0;  // optimizer steps that ended within the trace
  StepsKnownBy known_by = StepsKnownBy::unknown;
  std::vector<StepMark> marks;  // of the witness

  bool known() const { return known_by != StepsKnownBy::unknown; }
  // The step under way at an event; none in set-up or if the steps are unknown.
  std::optional<uint32_t> at(uint32_t event) const;
};

Steps steps_of(const memory::Snapshot& snapshot, uint32_t device, const Lifetimes& lifetimes);

}  // namespace cufit::analysis
