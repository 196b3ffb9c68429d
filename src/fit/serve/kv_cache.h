// SPDX-License-Identifier: Apache-2.0
// How much of one GPU an engine's cache takes for so many sequences of a length: its pages, how it
// groups layers of different kinds, and what tensor parallelism repeats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fit/serve/served_model.h"

namespace cufit::fit {

enum class Engine : uint8_t { vllm, sglang, transformers, llama_cpp };

// Bytes of one block of so many elements.
struct CacheType {
  std::string name;  // as the engine takes it: "auto", "fp8", "q8_0"
  uint64_t block = 1, block_bytes = 2;
  uint64_t bytes(uint64_t elements) const { return (elements + block - 1) / block * block_bytes; }
};
// nullopt: no such type of this engine.
std::optional<CacheType> cache_type(Engine engine, std::string_view name);

struct CacheSettings {
  Engine engine = Engine::vllm;
  CacheType type;
  uint64_t tp = 1;                 // llama.cpp: GPUs over which the layers are spread
  uint64_t batched_tokens = 2048;  // tokens of one step that may be in flight
  // Of a recurrent layer and sequence: one to write and one to start from while prefixes are cached,
  // as vLLM 0.33 does for every model.
  uint64_t states = 2;
  // Steps whose tokens a windowed layer holds at once: vLLM schedules one ahead, 0.25 did not.
  uint64_t batches_in_flight = 2;
};

// Of all layers that keep keys and values of a token, each head once: what tensor parallelism
// repeats is not counted, nor the rounding to pages.
uint64_t token_bytes(const ServedModel& model, const CacheSettings& settings);
// Without the layers that forget: what one more token takes beyond every window.
uint64_t far_token_bytes(const ServedModel& model, const CacheSettings& settings);
// Of one sequence, whatever its length, each part once.
uint64_t state_bytes(const ServedModel& model, const CacheSettings& settings);

class CacheUse {
 public:
  CacheUse(const ServedModel& model, const CacheSettings& settings);

  // Of one GPU, the fullest.
  uint64_t bytes(uint64_t context, uint64_t sequences) const;
  // 0: not even one token.
  uint64_t largest_context(uint64_t available, uint64_t sequences, uint64_t most) const;
  uint64_t most_sequences(uint64_t available, uint64_t context) const;
  // Sequences of `context` tokens that vLLM says it serves at once ("Maximum concurrency").
  double concurrency(uint64_t available, uint64_t context) const;
  // What engines call the cache's size in tokens; vLLM up to 0.20 counts the blocks of one group,
  // later versions what its sequences hold together (concurrency times context).
  uint64_t tokens(uint64_t available) const;
  uint64_t page_tokens() const { return page_tokens_; }
  // vLLM takes no more sequences than its pool has blocks where layers are recurrent; 0: no limit.
  uint64_t sequence_limit(uint64_t available) const;

 private:
  struct Layer {
    CacheKind kind = CacheKind::full;
    uint64_t window = 0;
    uint64_t token_bytes = 0;  // of one GPU
    uint64_t state_bytes = 0;
  };
  struct Group {
    CacheKind kind = CacheKind::full;
    uint64_t window = 0, page_tokens = 0;
  };
  void one_group();
  void several_groups();
  uint64_t blocks(const Group& group, uint64_t context) const;
  uint64_t request_blocks(uint64_t context) const;
  uint64_t plain_bytes(uint64_t context, uint64_t sequences) const;
  uint64_t pooled_bytes(uint64_t context, uint64_t sequences) const;

  CacheSettings settings_;
  std::vector<Layer> layers_;
  std::vector<Group> groups_;  // of vLLM
  uint64_t block_bytes_ = 0;   // of a block in every layer of a group
  uint64_t page_tokens_ = 16;
};

}  // namespace cufit::fit
