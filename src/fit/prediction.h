// SPDX-License-Identifier: Apache-2.0
// How much memory a program would take at a batch size: its requests and those of the libraries
// through the model of PyTorch's allocator (memory/allocator/caching_allocator.h). The point value
// is the likeliest; the upper value is the most over bounds of workspaces and sizes and over the
// orders in which the driver may place segments, and an allowance for requests that nobody sees
// (data/workspaces.toml, unseen_requests). All sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/step_program.h"
#include "fit/workspaces/workspaces.h"
#include "memory/allocator/allocator_settings.h"
#include "memory/allocator/caching_allocator.h"
#include "memory/allocator/version_profile.h"

namespace cufit::fit {

struct Setup {
  memory::VersionProfile version;
  memory::Settings settings;
  LibrarySetup libraries;
  uint64_t capacity = 0;                            // that the allocator can have; 0: no bound
  uint64_t total_memory = uint64_t{141} << 30;      // of the card; sizes expandable segments
  uint64_t outside_allocator = 0;                   // context and libraries, handed through
  const knowledge::Knowledge* knowledge = nullptr;  // null: the compiled one
};

// Where in the program something happens.
struct Moment {
  uint32_t step = 0;  // from 1; 0: before the first
  TracePhase phase = TracePhase::setup;
  std::string op, module, source;
};

// What the blocks hold that live when most is allocated. The sum without fragmentation is
// Prediction::peak_allocated.
struct Breakdown {
  uint64_t weights = 0;
  uint64_t buffers = 0;
  uint64_t gradients = 0;
  uint64_t optimizer_state = 0;
  uint64_t inputs = 0;
  uint64_t gathered = 0;       // parameters that are dealt out over ranks, gathered for use
  uint64_t communication = 0;  // buckets of gradients, buffers of collectives
  uint64_t activations = 0;  // made in forward and still there in backward
  uint64_t temporaries = 0;
  uint64_t workspaces = 0;
  uint64_t other = 0;          // made before the first step and none of these
  uint64_t fragmentation = 0;  // reserved less allocated at this moment
};

struct ModuleBytes {
  std::string module;
  uint64_t bytes = 0;
};

struct PredictedOom {
  Moment moment;
  memory::OutOfMemory what;
};

struct Prediction {
  uint64_t batch = 0;
  uint64_t peak_allocated = 0;
  uint64_t peak_allocated_upper = 0;
  uint64_t peak_reserved = 0;
  // Where `fits` is false: as far as the run came. With a capacity at most that, since the run then
  // gives cached memory back.
  uint64_t peak_reserved_upper = 0;
  uint64_t outside_allocator = 0;
  std::optional<PredictedOom> oom;        // at the point values
  std::optional<PredictedOom> upper_oom;  // at the upper values
  bool fits() const { return !oom && !upper_oom; }
  Breakdown breakdown;
  std::vector<ModuleBytes> activations_by_module;  // most first
  Moment peak;
  uint64_t alloc_retries = 0;  // cached memory was given back to serve a request; each costs time
  bool traced = false;         // a trace of this very batch size
  // Bytes at the peak whose size follows no proved rule at this batch size.
  uint64_t unproved_bytes = 0;
  uint64_t growth_per_step = 0;  // src/fit/step_growth.h
  // Ids of warnings that the report words, "fit.warning.<id>": "batch_one" (programs often do other
  // things with a batch of one), "sizes_rounded", "sizes_unclear", "cudnn_benchmark" (what cuDNN
  // tries out is reckoned as one GPU took it), "after_steps_left_out", "setup_left_out" (as in
  // StepProgram).
  std::vector<std::string> warnings;
};

// Error{unsupported} for a batch size that the traces do not answer for, and where no training step
// ended: a part of a step says nothing of its peak.
Result<Prediction> predict(const StepProgram& program, uint64_t batch, const Setup& setup);

// Fills StepProgram::left_out where something was left out. `setup` without a capacity.
void measure_left_out(StepProgram& program, const Setup& setup);

}  // namespace cufit::fit
