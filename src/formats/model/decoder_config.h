// SPDX-License-Identifier: Apache-2.0
// What a language model's config.json says of its layers, as far as it decides the memory of
// serving: sizes, heads, windows, recurrent state, experts. Of a model with pictures or sound: of its
// text part. A GGUF file's metadata tells the same under other names. 0: not said.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/model/gguf.h"

namespace cufit::formats {

struct DecoderConfig {
  std::string architecture, model_type;  // "LlamaForCausalLM", "llama"; of GGUF: "" and "llama"
  std::string dtype;                     // "bfloat16"
  std::string quantisation;              // "gptq", "fp8" ..; of GGUF: ""
  std::string kv_dtype;                  // "fp8" where the checkpoint brings scales for the cache
  uint64_t block_rows = 0, block_columns = 0;  // that one scale of fp8 weights is for
  bool block_attention = false;                // attention's weights have such scales too
  bool has_pictures = false;                   // a part beside the text model
  bool tied = false;                           // the output uses the embedding's weights
  bool tied_said = false;

  uint64_t layers = 0, hidden = 0, intermediate = 0, vocab = 0;
  uint64_t max_length = 0;  // as it stands there; fit/serve/context_length.h stretches it
  std::string rope_type;    // "yarn", "llama3": how positions are stretched
  double rope_factor = 0;
  uint64_t rope_original = 0, original_length = 0;  // beside the factor; beside the other sizes
  uint64_t heads = 0, kv_heads = 0, head_dim = 0, value_head_dim = 0;
  std::vector<uint64_t> kv_heads_by_layer;            // where they differ
  uint64_t global_head_dim = 0, global_kv_heads = 0;  // of layers without a window (Gemma 4)
  // Latent attention (DeepSeek): of a token the cache holds kv_lora_rank + rope_head_dim.
  uint64_t kv_lora_rank = 0, rope_head_dim = 0, nope_head_dim = 0, q_lora_rank = 0;
  uint64_t index_head_dim = 0, index_heads = 0;  // DeepSeek V3.2's indexer

  // Which layer is what.
  uint64_t window = 0;              // tokens that a sliding layer looks back
  uint64_t chunk = 0;               // of chunked attention (Llama 4)
  bool window_off = false;          // `use_sliding_window`, false where Qwen 2 and 3 do not say it
  uint64_t window_period = 0;       // Gemma 3: every so many layers one sees all
  uint64_t first_window_layer = 0;  // Qwen 2: `max_window_layers`
  std::vector<std::string> layer_types;
  std::string pattern;                                  // Nemotron-H: "M-M*-"
  uint64_t attention_period = 0, attention_offset = 0;  // Jamba
  uint64_t full_attention_interval = 0;                 // Qwen3-Next
  std::vector<uint64_t> attention_layers, dense_layers;
  std::vector<uint64_t> no_rope_layers;  // Llama 4: 0: sees all
  uint64_t shared_kv_layers = 0;         // Gemma 3n: so many at the end use others' cache

  // Recurrent layers.
  uint64_t linear_key_heads = 0, linear_value_heads = 0, linear_key_dim = 0, linear_value_dim = 0;
  uint64_t conv_kernel = 0;
  uint64_t state_size = 0, state_expand = 0, state_heads = 0, state_head_dim = 0, state_groups = 0;
  uint64_t state_inner = 0;  // GGUF: ssm.inner_size
  std::string state_dtype;   // "float32" where the config asks for it

  // Experts.
  uint64_t experts = 0, experts_used = 0, expert_intermediate = 0, shared_intermediate = 0;
  uint64_t shared_experts = 0, first_dense = 0, expert_period = 0, expert_offset = 0;
  uint64_t per_layer_input = 0;    // Gemma 3n: hidden_size_per_layer_input
  uint64_t next_token_layers = 0;  // for speculation; not loaded without it
  bool gated = true;               // the MLP has a gate beside the projection up
};

// Error{malformed} with the place for what is no JSON object or has a number beyond sense.
Result<DecoderConfig> parse_decoder_config(std::string_view text, const std::string& name);

// Error{malformed} where a GGUF file does not say what it is.
Result<DecoderConfig> decoder_config_of(const Gguf& file, const std::string& name);

}  // namespace cufit::formats
