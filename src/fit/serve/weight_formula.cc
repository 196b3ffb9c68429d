// SPDX-License-Identifier: Apache-2.0
// The weights of a decoder by its config alone.
#include <algorithm>

#include "base/format.h"
#include "fit/serve/weights.h"

namespace cufit::fit {
namespace {

using formats::DecoderConfig;

uint64_t attention_weights(const DecoderConfig& c, const CacheLayer& layer) {
  if (layer.kind == CacheKind::latent) {
    const uint64_t head = c.nope_head_dim + c.rope_head_dim;
    const uint64_t value = c.value_head_dim != 0 ? c.value_head_dim : c.nope_head_dim;
    const uint64_t query = c.q_lora_rank != 0
                               ? c.hidden * c.q_lora_rank + c.q_lora_rank * c.heads * head
                               : c.hidden * c.heads * head;
    const uint64_t index = c.index_heads * c.index_head_dim * c.q_lora_rank +
                           c.hidden * (c.index_head_dim + c.index_heads);
    return query + c.hidden * (c.kv_lora_rank + c.rope_head_dim) +
           c.kv_lora_rank * c.heads * (c.nope_head_dim + value) + c.heads * value * c.hidden +
           index;
  }
  const uint64_t query = c.heads * layer.key_dim, keys = layer.kv_heads * layer.key_dim;
  const uint64_t values = layer.kv_heads * layer.value_dim;
  const bool gate = starts_with(c.model_type, "qwen3_next") || starts_with(c.model_type, "qwen3_5");
  return c.hidden * (query * (gate ? 2 : 1) + keys + values) + c.heads * layer.value_dim * c.hidden;
}

uint64_t state_weights(const DecoderConfig& c) {
  if (c.linear_value_heads != 0) {
    const uint64_t keys = c.linear_key_heads * c.linear_key_dim;
    const uint64_t values = c.linear_value_heads * c.linear_value_dim;
    return c.hidden * (2 * keys + 2 * values + 2 * c.linear_value_heads) + values * c.hidden +
           (2 * keys + values) * c.conv_kernel;
  }
  if (c.state_size == 0) return c.hidden * c.hidden * 4;  // a short convolution
  const uint64_t expand = c.state_expand == 0 ? 2 : c.state_expand;
  uint64_t inner = expand * c.hidden;
  if (c.state_heads == 0) {  // Mamba 1
    const uint64_t rank = (c.hidden + 15) / 16;
    return c.hidden * 2 * inner + inner * (c.conv_kernel + rank + 2 * c.state_size) + rank * inner +
           inner * c.state_size + inner * c.hidden;
  }
  if (c.state_head_dim != 0) inner = c.state_heads * c.state_head_dim;
  const uint64_t groups = c.state_groups == 0 ? 1 : c.state_groups;
  const uint64_t conv = inner + 2 * groups * c.state_size;
  return c.hidden * (inner + conv + c.state_heads) + conv * c.conv_kernel + inner * c.hidden;
}

uint64_t mlp_weights(const DecoderConfig& c, uint64_t layer) {
  const uint64_t matrices = c.gated ? 3 : 2;
  if (!has_experts(c, layer)) return matrices * c.hidden * c.intermediate;
  const uint64_t each = c.expert_intermediate != 0 ? c.expert_intermediate : c.intermediate;
  uint64_t shared = c.shared_intermediate;
  if (shared == 0 && c.shared_experts != 0) shared = c.shared_experts * each;
  return matrices * c.hidden * (c.experts * each + shared) + c.hidden * c.experts;
}

}  // namespace

bool has_experts(const formats::DecoderConfig& c, uint64_t layer) {
  if (c.experts == 0 || layer < c.first_dense) return false;
  for (const uint64_t dense : c.dense_layers)
    if (dense == layer) return false;
  if (c.expert_period <= 1) return true;
  if (starts_with(c.model_type, "qwen") || starts_with(c.model_type, "llama4"))
    return (layer + 1) % c.expert_period == 0;
  return layer % c.expert_period == c.expert_offset;
}

Result<uint64_t> reckoned_weight_bytes(const ServedModel& model, const std::string& name) {
  const DecoderConfig& c = model.config;
  const auto no = [&](const char* why) {
    return fail(
        Code::unsupported,
        format("{}: no weights are beside it, and {}: their size cannot be reckoned", name, why));
  };
  if (!c.quantisation.empty()) return no("the config names a quantisation");
  if (c.has_pictures) return no("the model has a part beside its decoder");
  if (c.vocab == 0) return no("the config says no `vocab_size`");
  if (c.per_layer_input != 0 || c.model_type == "falcon_h1" || !c.pattern.empty())
    return no("this architecture has no closed form here");
  if (c.intermediate == 0 && c.expert_intermediate == 0 && c.heads != 0)
    return no("the config says no `intermediate_size`");
  if (model.cache.size() != c.layers) return no("not every layer is told");
  // Gemma ties the two without a word in its config.
  const bool tied = c.tied || (!c.tied_said && starts_with(c.model_type, "gemma"));
  // A sum of doubles: exact below 2^53, and hostile configs end at the bound.
  double sum = static_cast<double>(c.vocab * c.hidden * (tied ? 1 : 2) + c.hidden);
  for (uint64_t i = 0; i < c.layers; ++i) {
    const CacheLayer& layer = model.cache[i];
    sum += static_cast<double>(layer.kind == CacheKind::state ? state_weights(c)
                                                              : attention_weights(c, layer));
    if (c.heads != 0) sum += static_cast<double>(mlp_weights(c, i));
    sum += static_cast<double>(2 * c.hidden);
  }
  return static_cast<uint64_t>(std::min(sum, 5e17)) *
         2;  // engines compute in a half type whatever the file has
}

}  // namespace cufit::fit
