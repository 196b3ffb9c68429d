// SPDX-License-Identifier: Apache-2.0
// The witnesses of steps.h: ranges of events that are an optimizer's step or a zero_grad.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/analysis/lifetimes.h"
#include "memory/analysis/stack_roles.h"

namespace cufit::analysis {

enum class StepMarkKind : uint8_t { optimizer, zero_grad };

// Events [begin, end). Empty where it made none. Marks wholly before the trace have end 0.
struct StepMark {
  uint32_t begin = 0, end = 0;
  uint32_t name = memory::k_no_text;  // tells optimizers apart, if known
  StepMarkKind kind = StepMarkKind::optimizer;
  bool before_trace = false;
  bool open = false;  // began and did not end
};

// In the order of their beginnings; empty if the witness is silent.
std::vector<StepMark> marks_of_annotations(const memory::Snapshot& snapshot, uint32_t device);
std::vector<StepMark> marks_of_frames(const memory::Snapshot& snapshot, uint32_t device,
                                      const StackRoles& roles);
std::vector<StepMark> marks_of_frees(const memory::Snapshot& snapshot, uint32_t device,
                                     const Lifetimes& lifetimes);

}  // namespace cufit::analysis
