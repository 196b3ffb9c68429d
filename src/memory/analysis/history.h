// SPDX-License-Identifier: Apache-2.0
// Memory step by step: peaks, what each step began with, and whether that is steady, grows or
// spikes.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/analysis/categories.h"

namespace cufit::analysis {

enum class Trend : uint8_t { unknown, steady, growing, spiking, jumping };
const char* to_string(Trend trend);

struct StepUse {
  uint32_t step = 0;
  uint32_t begin = 0, end = 0;  // events [begin, end)
  uint32_t peak_event = 0;      // the first of the highest
  uint64_t peak_bytes = 0;      // allocated
  uint64_t begin_bytes = 0;     // allocated when it began
  bool finished = false;
};

struct History {
  std::vector<StepUse> steps;
  // growing: what steps begin with rises in at least three of four steps, by k_least_growth in all.
  // spiking: one step's peak is 1.25 times the median or more. jumping: the last step begins with
  // 1.25 times as much as the second, without growing. unknown: less than three steps.
  Trend trend = Trend::unknown;
  uint64_t growth_per_step_bytes = 0;  // median
  uint64_t growth_bytes = 0;           // allocated at the end of work by rows that grow
  uint32_t growing_blocks = 0;
  std::vector<bool> grows;        // by row: made in a later step than the first, kept to the end
  uint64_t usual_peak_bytes = 0;  // median over finished steps
  uint64_t highest_before_bytes = 0;  // highest peak of a finished step
};

History history_of(const Lifetimes& lifetimes, const std::vector<Category>& categories,
                   const Steps& steps, const memory::Program& program);

}  // namespace cufit::analysis
