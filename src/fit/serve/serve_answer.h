// SPDX-License-Identifier: Apache-2.0
// Does serving fit: for each card the largest context and the most sequences, the options that make
// the engine start, or what it would print where it does not. A card stands for each of `tp` alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fit/answer/cards.h"
#include "fit/serve/step_memory.h"
#include "fit/serve/weights.h"

namespace cufit::fit {

constexpr uint64_t k_serve_least_context = 256;  // tokens; less serves nobody

struct ServeQuestion {
  Engine engine = Engine::vllm;
  uint64_t tp = 1;
  std::optional<uint64_t> context, sequences;
  CacheType type;
  std::vector<Card> cards;
};

// Why no memory helps: "report.serve.refused.<id>" and what stands in its text.
struct ServeRefusal {
  std::string id;
  std::map<std::string, std::string> args;
};

struct ServeCard : Card {
  bool fits = false;
  uint64_t max_context = 0;        // for the sequences asked for, with `flags`
  uint64_t max_sequences = 0;      // of the context asked for, with `flags`
  std::vector<std::string> flags;  // words of a command line; none: nothing makes it start
  // What `flags` ask for; of transformers what was found to start.
  uint64_t started_context = 0, started_sequences = 0;
  uint64_t gpu_layers = 0;  // llama.cpp: `-ngl`, the output and layers from the end; 0: all
  std::optional<ServeRefusal> refused;
  std::string message;  // of the engine, where the question as asked does not start
  StepMemory step;
  uint64_t budget = 0;  // that the engine may use: all but `step` and weights is cache
  uint64_t cache_available = 0, cache_needed = 0;  // of one GPU; available after upper values
  uint64_t fp8_context = 0;  // with an fp8 cache, where that is more and the card knows fp8
};

struct ServeAnswer {
  Engine engine = Engine::vllm;
  std::string served;  // what the engine opens: a folder or a file
  uint64_t tp = 1, context = 0, sequences = 1;
  CacheType type;
  ServedWeights weights;
  uint64_t token_bytes = 0, far_token_bytes = 0, state_bytes = 0;
  StepMemory step;  // of the engine's usual start on a small card
  std::vector<ServeCard> cards;
  std::vector<std::pair<std::string, std::string>> warnings;  // id, detail
  bool fits() const;
};

// Error{usage} for a context beyond sense or without one to assume.
Result<ServeAnswer> serve_answer(const ServedModel& model, ServedWeights weights,
                                 const ServeQuestion& question,
                                 const knowledge::Knowledge& knowledge, const std::string& name);

}  // namespace cufit::fit
