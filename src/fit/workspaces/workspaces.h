// SPDX-License-Identifier: Apache-2.0
// What is asked for and no trace on a pretended GPU sees. By libraries while they run an operator:
// cuBLAS's workspace, kept for ever by each thread that multiplies matrices; cuDNN's for a
// convolution, freed at once. By the program: what batches of validation that were not traced
// leave. Sizes from data/workspaces.toml, in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "fit/step_program.h"
#include "knowledge/knowledge.h"

namespace cufit::fit {

// The operator of a call by which the program gives back what no block holds.
inline constexpr std::string_view k_empty_cache = "empty_cache";
// Not operators either: the storage that is freed next is used on another stream and is taken again only once that is done.
// Numbers: storages so far - 1 - that of each storage.
inline constexpr std::string_view k_waits_for_event = "waits_for_event";
inline constexpr std::string_view k_events_done = "events_done";

// No graph is left that was captured in a pool. One number: the stream that its sites have.
inline constexpr std::string_view k_graph_pool_released = "graph_pool_released";

inline bool is_operator(std::string_view op) {
  return op != k_empty_cache && op != k_waits_for_event && op != k_events_done &&
         op != k_graph_pool_released;
}

struct LibrarySetup {
  ComputeCapability cc{9, 0};
  uint32_t torch_major = 2, torch_minor = 11;
  std::string cublas_workspace_config;  // CUBLAS_WORKSPACE_CONFIG; empty: not set
  bool cudnn_benchmark = false;
  uint64_t multiprocessors = 132;  // of an H100 or H200; few reductions are so wide that it matters
};

struct Workspace {
  uint64_t point = 0;
  uint64_t upper = 0;
  // Of StepProgram::events: asked for after this one, the call or the alloc of its result.
  uint32_t event = 0;
  uint8_t stream = 0;          // of TraceSite
  bool kept = false;           // for ever
  bool by_program = false;     // what it holds, not a library
  bool replaces = false;       // asked for beside the last one of these, which is freed then
  bool empties_cache = false;  // what no block holds is given back when it is freed
  // Freed after this event; where it is not later than `event`, before anything else happens.
  uint32_t until = 0;
};

// In the order of events. Calls whose numbers are not those of their operator ask for nothing.
// `sizes`: sizes_at() of the same program.
std::vector<Workspace> workspaces_at(const StepProgram& program, const std::vector<SizeAt>& sizes,
                                     const LibrarySetup& setup,
                                     const knowledge::Knowledge& knowledge);

// ":4096:2:16:8": KiB and how many, in pairs. nullopt: not of this form.
std::optional<uint64_t> parse_cublas_workspace_config(std::string_view text);

}  // namespace cufit::fit
