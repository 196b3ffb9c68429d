// SPDX-License-Identifier: Apache-2.0
// What an engine takes of a GPU beside weights and cache: the tensors of its largest step, recorded
// CUDA graphs, collectives. The factors are rows of data/serving.toml.
#pragma once

#include <cstdint>
#include <string_view>

#include "fit/serve/kv_cache.h"
#include "knowledge/knowledge.h"

namespace cufit::fit {

struct Range {
  uint64_t usual = 0, upper = 0;
};
inline Range operator+(const Range& a, const Range& b) {
  return {a.usual + b.usual, a.upper + b.upper};
}

// How an engine is started, as far as memory is concerned.
struct StepSettings {
  uint64_t batched_tokens = 2048;  // of one step; transformers: of the whole prompt
  uint64_t sequences = 256;
  bool graphs = true;
};

struct StepMemory {
  Range activation, other;
};
StepMemory step_memory(const ServedModel& model, Engine engine, uint64_t tp,
                       const StepSettings& settings, const knowledge::Knowledge& knowledge);

// A row of data/serving.toml; 0 where the table has none.
double serving_size(const knowledge::Knowledge& knowledge, Engine engine, std::string_view of,
                    bool upper = false);
std::string_view engine_name(Engine engine);  // "vllm", "llama.cpp"

}  // namespace cufit::fit
