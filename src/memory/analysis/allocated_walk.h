// SPDX-License-Identifier: Apache-2.0
// allocated_bytes along a trace, from event to event and without an array of them: the requests of
// the program are in the order of their events.
#pragma once

#include <cstdint>

#include "memory/analysis/lifetimes.h"
#include "memory/replay/replay_program.h"

namespace cufit::analysis {

class AllocatedWalk {
 public:
  // Both of one verified; referred to.
  AllocatedWalk(const memory::Program& program, const Lifetimes& lifetimes);

  // After `event`, which is not before the one of the call before.
  uint64_t to(uint32_t event);

  struct Peak {
    uint32_t event = 0;  // the first of the highest
    uint64_t bytes = 0;
  };
  // Of what is allocated after the events [begin, end); the next call goes on from end - 1.
  Peak highest(uint32_t begin, uint32_t end);

 private:
  void take(const memory::Op& op);

  const memory::Program& program_;
  const Lifetimes& lifetimes_;
  memory::AllocationNumbers numbers_;
  size_t next_ = 0;     // of the program's ops
  uint64_t bytes_ = 0;  // after those before it
};

}  // namespace cufit::analysis
