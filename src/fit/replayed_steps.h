// SPDX-License-Identifier: Apache-2.0
// The requests of a program at one batch size through the model of the allocator, once. Used by
// prediction.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fit/prediction.h"

namespace cufit::fit {

struct Requests {
  const StepProgram& program;
  const std::vector<SizeAt>& sizes;          // by StepProgram::sizes
  const std::vector<Workspace>& workspaces;  // by event
};

enum class Estimate : uint8_t { point, upper };

struct MemoryAt {
  uint64_t allocated = 0, reserved = 0;
};

struct ReplayedSteps {
  uint64_t peak_allocated = 0;
  uint64_t peak_reserved = 0;
  uint64_t retries = 0;
  std::optional<memory::OutOfMemory> oom;  // `event` of StepProgram::events; the run ended there
  uint32_t peak_event = 0;                 // the first at which so much was allocated
  uint64_t peak_event_reserved = 0;
  uint64_t peak_workspaces = 0;       // of the libraries, at this event
  uint64_t peak_by_program = 0;       // what batches that were not traced left, at this event
  std::vector<uint64_t> block_bytes;  // by storage, what it took; only for Estimate::point
};

// `series`, if given, receives one row per event that ran: the most while it and the workspaces
// after it were served.
ReplayedSteps replay_steps(const Requests& requests, const Setup& setup, Estimate values,
                           memory::SyntheticMemory::Order order,
                           std::vector<MemoryAt>* series = nullptr);

}  // namespace cufit::fit
