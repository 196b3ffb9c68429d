// SPDX-License-Identifier: Apache-2.0
// Behind which event of a program a call's kernel runs: results are made after the call is noted
// and before its kernel runs. Used by workspaces.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fit/step_program.h"

namespace cufit::fit {

// Calls are asked for in the order of events; each event is looked at once.
class CallResults {
 public:
  explicit CallResults(const StepProgram& program) : program_(program) {}

  // Of several calls side by side (the gradients of one convolution) the first allocs that follow,
  // in order.
  uint32_t event_of(size_t call);
  // The last of the allocs side by side after a call, `before` of them left out: an operator with
  // several results makes them all before its kernel runs, and some of what it keeps after.
  uint32_t after_all(size_t call, size_t before);

 private:
  struct Run {
    size_t first = 0, end = 0;  // of events: calls side by side
    size_t results_end = 0;     // behind the allocs that follow
  };
  bool is_of_library(size_t event) const;
  const StepProgram& program_;
  Run library_, calls_;  // those around the last call that was asked for
};

}  // namespace cufit::fit
