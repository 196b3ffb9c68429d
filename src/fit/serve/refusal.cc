// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/refusal.h"

#include <algorithm>

#include "fit/serve/weights.h"

namespace cufit::fit {
namespace {

using formats::DecoderConfig;
using Refused = std::optional<ServeRefusal>;

// vllm/config/model.py of vLLM 0.33: float16 overflows there, and float32 takes twice the memory.
constexpr std::string_view k_no_half[] = {"gemma2", "gemma3", "gemma3_text", "plamo2", "glm4"};

ServeRefusal because(std::string id, std::map<std::string, std::string> args) {
  return {std::move(id), std::move(args)};
}

Refused old_card(const ServedModel& model, const ServeQuestion& question, const Card& card,
                 const knowledge::Knowledge& knowledge) {
  const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc);
  if (!cc) return std::nullopt;
  const double least = serving_size(knowledge, question.engine, "least_capability");
  if (cc->major + cc->minor / 10.0 < least - 0.01) return because("too_old", {});
  const std::string& type = model.config.model_type;
  if (question.engine == Engine::vllm && *cc < k_first_with_bf16 &&
      std::find(std::begin(k_no_half), std::end(k_no_half), type) != std::end(k_no_half))
    return because("half", {{"type", type}});
  return std::nullopt;
}

// llama.cpp quantises each head by itself.
Refused cache_block(const ServedModel& model, const CacheType& type) {
  for (const CacheLayer& layer : model.cache) {
    if (layer.kind == CacheKind::state || type.block <= 1) continue;
    for (const auto& [part, size] :
         {std::pair("K", layer.key_dim), std::pair("V", layer.value_dim)})
      if (size % type.block != 0)
        return because("cache_block", {{"part", part},
                                       {"low", part == std::string_view("K") ? "k" : "v"},
                                       {"type", type.name},
                                       {"block", std::to_string(type.block)},
                                       {"number", std::to_string(size)}});
  }
  return std::nullopt;
}

// vLLM and sglang over several GPUs, in the order in which their models are made.
class Split {
 public:
  Split(const ServedModel& model, uint64_t tp) : model_(model), c_(model.config), tp_(tp) {
    for (uint64_t i = 0; i < c_.layers; ++i) (has_experts(c_, i) ? sparse_ : dense_) = true;
    if (c_.heads == 0) dense_ = false;  // Mamba has no MLP
  }

  Refused refused() const {
    if (c_.heads % tp_ != 0) return number("heads", c_.heads);
    const uint64_t rows = (c_.vocab + k_vocab_padding - 1) / k_vocab_padding * k_vocab_padding;
    if (rows % tp_ != 0) return number("vocabulary", rows);
    for (const CacheLayer& layer : model_.cache)
      if (Refused keys = of_keys(layer)) return keys;
    if (dense_ && c_.intermediate % tp_ != 0) return number("mlp", c_.intermediate);
    if (sparse_ && expert() % tp_ != 0) return number("experts", expert());
    return c_.block_rows == 0 || c_.block_columns == 0 ? std::nullopt : of_blocks();
  }

 private:
  uint64_t expert() const {
    return c_.expert_intermediate != 0 ? c_.expert_intermediate : c_.intermediate;
  }
  ServeRefusal number(const char* id, uint64_t value) const {
    return because(id, {{"number", std::to_string(value)}, {"tp", std::to_string(tp_)}});
  }
  // Beyond their number KV heads are replicated, each as often.
  Refused of_keys(const CacheLayer& layer) const {
    if (layer.kind == CacheKind::latent) return std::nullopt;
    if (layer.kind == CacheKind::state) {
      for (const uint64_t heads : {c_.linear_key_heads, c_.linear_value_heads})
        if (heads % tp_ != 0) return number("linear_heads", heads);
      return std::nullopt;
    }
    if (layer.kv_heads == 0 || layer.kv_heads % tp_ == 0 || tp_ % layer.kv_heads == 0)
      return std::nullopt;
    return number("keys", layer.kv_heads);
  }
  // A scale of fp8 weights is for a block of them, and no block is cut.
  Refused of_blocks() const {
    const auto off = [&](const char* id, uint64_t size, uint64_t block) -> Refused {
      if (size % block == 0) return std::nullopt;
      return because(id, {{"number", std::to_string(size)}, {"block", std::to_string(block)}});
    };
    for (const CacheLayer& layer : model_.cache) {
      if (!c_.block_attention || layer.kind == CacheKind::latent || layer.kind == CacheKind::state)
        continue;
      const uint64_t keys = std::max<uint64_t>(1, layer.kv_heads / tp_);
      for (const uint64_t heads : {c_.heads / tp_, keys})
        if (Refused out = off("block", heads * layer.key_dim, c_.block_rows)) return out;
    }
    if (dense_)
      if (Refused out = off("block", c_.intermediate / tp_, c_.block_rows)) return out;
    if (sparse_) return off("expert_block", expert() / tp_, c_.block_rows);
    return std::nullopt;
  }

  const ServedModel& model_;
  const DecoderConfig& c_;
  const uint64_t tp_;
  bool dense_ = false, sparse_ = false;
};

}  // namespace

Refused serve_refusal(const ServedModel& model, const ServeQuestion& question, const Card& card,
                      const knowledge::Knowledge& knowledge) {
  if (Refused old = old_card(model, question, card, knowledge)) return old;
  if (question.engine == Engine::llama_cpp) return cache_block(model, question.type);
  const bool splits = question.engine == Engine::vllm || question.engine == Engine::sglang;
  if (!splits || question.tp == 1) return std::nullopt;
  return Split(model, question.tp).refused();
}

}  // namespace cufit::fit
