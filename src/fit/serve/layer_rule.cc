// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/layer_rule.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::fit {
namespace {

using formats::DecoderConfig;

constexpr uint64_t k_most_of_layer = uint64_t{1} << 40;  // elements

enum class LayerPart : uint8_t {
  full,
  window,
  chunk,
  linear,
  mamba1,
  mamba2,
  conv,
  both,
  none,
  unknown
};

LayerPart part_of_name(const std::string& name, const DecoderConfig& config) {
  if (name == "full_attention" || name == "attention" || name == "global" || name == "*")
    return LayerPart::full;
  if (name == "sliding_attention" || name == "sliding_window") return LayerPart::window;
  if (name == "chunked_attention") return LayerPart::chunk;
  if (name == "linear_attention") return LayerPart::linear;
  if (name == "conv") return LayerPart::conv;
  if (name == "mamba" || name == "mamba2" || name == "M")
    return config.state_heads != 0 || config.state_head_dim != 0 ? LayerPart::mamba2
                                                                 : LayerPart::mamba1;
  if (name == "mlp" || name == "moe" || name == "-" || name == "E") return LayerPart::none;
  return LayerPart::unknown;
}

// A config with a window and no word on the layers.
LayerPart window_part(const DecoderConfig& config, uint64_t layer) {
  const std::string& type = config.model_type;
  if (config.chunk != 0) {
    const bool all = config.no_rope_layers.empty() ? (layer + 1) % 4 == 0
                                                   : layer < config.no_rope_layers.size() &&
                                                         config.no_rope_layers[layer] == 0;
    return all ? LayerPart::full : LayerPart::chunk;
  }
  if (config.window == 0 || config.window_off) return LayerPart::full;
  if (type == "gemma2" || type == "gpt_oss" || type == "gpt-oss")
    return layer % 2 == 0 ? LayerPart::window : LayerPart::full;
  uint64_t period = config.window_period;
  if (period == 0 && starts_with(type, "gemma3"))
    period = type == "gemma3n" || type == "gemma3n_text" ? 5 : 6;
  if (period == 0 && type == "cohere2") period = 4;
  if (period > 1) return (layer + 1) % period != 0 ? LayerPart::window : LayerPart::full;
  if (starts_with(type, "qwen") && layer < config.first_window_layer) return LayerPart::full;
  return LayerPart::window;
}

LayerPart part_of(const DecoderConfig& config, uint64_t layer) {
  if (config.model_type == "falcon_h1") return LayerPart::both;
  if (config.heads == 0)
    return config.model_type == "mamba2" ? LayerPart::mamba2 : LayerPart::mamba1;
  if (!config.pattern.empty())
    return layer < config.pattern.size()
               ? part_of_name(std::string(1, config.pattern[layer]), config)
               : LayerPart::unknown;
  if (!config.layer_types.empty())
    return layer < config.layer_types.size() ? part_of_name(config.layer_types[layer], config)
                                             : LayerPart::unknown;
  if (config.attention_period != 0)
    return layer % config.attention_period == config.attention_offset ? LayerPart::full
                                                                      : LayerPart::mamba1;
  if (config.full_attention_interval != 0)
    return (layer + 1) % config.full_attention_interval == 0 ? LayerPart::full : LayerPart::linear;
  if (!config.attention_layers.empty() && config.state_size != 0) {
    const auto& list = config.attention_layers;
    return std::find(list.begin(), list.end(), layer) != list.end() ? LayerPart::full
                                                                    : LayerPart::mamba2;
  }
  return window_part(config, layer);
}

// DeepSeek V3.2's indexer: a key in fp8 and its scale in fp32 for every 128 elements.
uint64_t index_bytes_of(const DecoderConfig& config) {
  return config.index_head_dim == 0
             ? 0
             : config.index_head_dim + (config.index_head_dim + 127) / 128 * 4;
}

CacheLayer attention_cache(const DecoderConfig& config, uint64_t layer, LayerPart part) {
  CacheLayer out;
  if (config.kv_lora_rank != 0) {
    out.kind = CacheKind::latent;
    out.kv_heads = 1;
    out.key_dim = config.kv_lora_rank + config.rope_head_dim;
    out.index_bytes = index_bytes_of(config);
    return out;
  }
  out.kv_heads = config.kv_heads;
  if (layer < config.kv_heads_by_layer.size() && config.kv_heads_by_layer[layer] != 0)
    out.kv_heads = config.kv_heads_by_layer[layer];
  out.key_dim = config.head_dim;
  out.value_dim = config.value_head_dim != 0 ? config.value_head_dim : config.head_dim;
  if (part == LayerPart::full && config.global_head_dim != 0) {
    out.key_dim = out.value_dim = config.global_head_dim;
    if (config.global_kv_heads != 0) out.kv_heads = config.global_kv_heads;
  }
  // A window of nothing, or one that is off, is none: the layer sees all.
  if (part == LayerPart::window && config.window != 0 && !config.window_off) {
    out.kind = CacheKind::window;
    out.window = config.window;
  }
  if (part == LayerPart::chunk && config.chunk != 0) {
    out.kind = CacheKind::chunk;
    out.window = config.chunk;
  }
  return out;
}

uint64_t state_bytes_of(const DecoderConfig& config) {
  if (starts_with(config.state_dtype, "float32") || config.state_dtype == "fp32") return 4;
  return config.state_dtype.empty() && config.model_type == "nemotron_h" ? 4 : 2;
}

CacheLayer linear_attention(const DecoderConfig& config) {
  CacheLayer out;
  out.kind = CacheKind::state;
  uint64_t key_heads = config.linear_key_heads, value_heads = config.linear_value_heads;
  uint64_t key_dim = config.linear_key_dim, value_dim = config.linear_value_dim;
  if (key_heads == 0 && config.state_inner != 0 && config.state_heads != 0) {  // GGUF's names
    key_heads = config.state_groups;
    value_heads = config.state_heads;
    key_dim = config.state_size;
    value_dim = config.state_inner / config.state_heads;
  }
  const uint64_t kernel = config.conv_kernel == 0 ? 4 : config.conv_kernel;
  out.conv_elements = (2 * key_heads * key_dim + value_heads * value_dim) * (kernel - 1);
  out.state_elements = value_heads * value_dim * key_dim;
  out.state_element_bytes = state_bytes_of(config);
  return out;
}

CacheLayer mamba_cache(const DecoderConfig& config, LayerPart part) {
  CacheLayer out;
  out.kind = CacheKind::state;
  const uint64_t kernel = config.conv_kernel == 0 ? 4 : config.conv_kernel;
  const uint64_t expand = config.state_expand == 0 ? 2 : config.state_expand;
  uint64_t inner = config.state_inner != 0 ? config.state_inner : expand * config.hidden;
  if (part == LayerPart::mamba1) {
    out.conv_elements = inner * (kernel - 1);
    out.state_elements = inner * config.state_size;
  } else {
    if (config.state_heads != 0 && config.state_head_dim != 0)
      inner = config.state_heads * config.state_head_dim;
    const uint64_t groups = config.state_groups == 0 ? 1 : config.state_groups;
    out.kv_heads = groups;                                       // replicated as KV heads are
    out.replicated_conv = 2 * config.state_size * (kernel - 1);  // of one group
    out.conv_elements = inner * (kernel - 1) + groups * out.replicated_conv;
    out.state_elements = inner * config.state_size;
  }
  out.state_element_bytes = state_bytes_of(config);
  return out;
}

CacheLayer short_convolution(const DecoderConfig& config) {
  CacheLayer out;
  out.kind = CacheKind::state;
  out.conv_elements = config.hidden * (config.conv_kernel == 0 ? 2 : config.conv_kernel - 1);
  return out;
}

}  // namespace

Result<std::vector<CacheLayer>> layer_caches(const DecoderConfig& config, uint64_t layer,
                                             const std::string& name) {
  const LayerPart part = part_of(config, layer);
  if (part == LayerPart::unknown) {
    const std::string what = layer < config.layer_types.size() ? config.layer_types[layer]
                             : layer < config.pattern.size() ? std::string(1, config.pattern[layer])
                                                             : "nothing";
    return fail(Code::unsupported,
                format("{}: layer {} is `{}`, a kind of layer that cufit does not know", name,
                       layer, what));
  }
  // The last layers of Gemma 3n read what earlier ones keep.
  if (config.shared_kv_layers != 0 && config.shared_kv_layers < config.layers &&
      layer >= config.layers - config.shared_kv_layers)
    return std::vector<CacheLayer>();
  std::vector<CacheLayer> out;
  if (part == LayerPart::none) return out;
  if (part == LayerPart::linear)
    out.push_back(linear_attention(config));
  else if (part == LayerPart::conv)
    out.push_back(short_convolution(config));
  else if (part == LayerPart::mamba1 || part == LayerPart::mamba2)
    out.push_back(mamba_cache(config, part));
  else
    out.push_back(attention_cache(config, layer, part));
  if (part == LayerPart::both) out.push_back(mamba_cache(config, LayerPart::mamba2));
  for (const CacheLayer& part_of_it : out)
    if (part_of_it.kv_heads * (part_of_it.key_dim + part_of_it.value_dim) > k_most_of_layer ||
        part_of_it.conv_elements + part_of_it.state_elements > k_most_of_layer)
      return fail(Code::malformed, format("{}: layer {} is beyond any model", name, layer));
  if (out.back().kind == CacheKind::state &&
      out.back().conv_elements + out.back().state_elements == 0)
    return fail(
        Code::unsupported,
        format("{}: layer {} is recurrent, and the sizes of its state are not said", name, layer));
  return out;
}

}  // namespace cufit::fit
