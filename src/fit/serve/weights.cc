// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/weights.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/number.h"

namespace cufit::fit {
namespace {

using formats::Tensor;

constexpr uint64_t k_most_weights = uint64_t{1} << 60;  // sums of hostile headers stop here

bool named(const Tensor& tensor, std::string_view part) { return contains(tensor.name, part); }

bool is_vocabulary(const Tensor& tensor) {
  return named(tensor, "embed_tokens.weight") || named(tensor, "lm_head.") ||
         named(tensor, "word_embeddings.weight") || ends_with(tensor.name, "wte.weight") ||
         named(tensor, "tok_embeddings.weight") || ends_with(tensor.name, "embed_out.weight");
}

// The layer's number in "model.layers.61.mlp.up_proj.weight"; the config's count for none.
uint64_t layer_of(const std::string& name, uint64_t none) {
  for (const std::string_view part : {"layers.", "blk.", ".h.", "blocks."}) {
    const size_t at = name.find(part);
    if (at == std::string::npos) continue;
    const size_t from = at + part.size(), end = name.find('.', from);
    if (end != std::string::npos)
      if (const auto number = parse_uint(std::string_view(name).substr(from, end - from)))
        return *number;
  }
  return none;
}

bool in_picture_part(const Tensor& tensor) {
  for (const char* part :
       {"visual.", "vision_", "audio_tower", "multi_modal_projector", "mm_projector",
        "image_newline", "embed_vision", "embed_audio", "patch_embed"})
    if (named(tensor, part)) return true;
  return false;
}

// Layers behind the last, and the tied output that some files repeat: engines do not load them.
bool is_left_out(const Tensor& tensor, const formats::DecoderConfig& config) {
  if (starts_with(tensor.name, "mtp.") || named(tensor, ".mtp.")) return true;
  if (!in_picture_part(tensor) && named(tensor, "model.layers.") &&
      layer_of(tensor.name, 0) >= config.layers)
    return true;
  if (config.tied && named(tensor, "lm_head.")) return true;
  return ends_with(tensor.name, "rotary_emb.inv_freq");
}

bool is_replicated(const Tensor& tensor) {
  if (in_picture_part(tensor)) return true;
  for (const char* part :
       {"norm", "q_a_proj", "kv_a_proj_with_mqa", "fused_qkv_a_proj", "indexer", "mlp.gate.",
        "block_sparse_moe.gate.", "router", "shared_expert_gate", "e_score_correction_bias",
        "position_embeddings", "wpe.weight", "per_layer_model_projection", "laurel", "k_scale",
        "v_scale", "input_scale", "weight_scale_2", "weight_global_scale"})
    if (named(tensor, part)) return true;
  return tensor.elements <= 1;
}

bool is_key_or_value(const Tensor& tensor) {
  return !named(tensor, "linear_attn") && (named(tensor, "k_proj") || named(tensor, "v_proj"));
}

uint64_t capped(uint64_t sum, uint64_t bytes) { return std::min(sum + bytes, k_most_weights); }

uint64_t split_over(uint64_t bytes, uint64_t parts) { return (bytes + parts - 1) / parts; }

// KV heads are replicated on more GPUs than there are; the vocabulary is padded, then split.
uint64_t gpu_bytes_of(const Tensor& tensor, uint64_t bytes, const formats::DecoderConfig& config,
                      uint64_t tp) {
  if (is_vocabulary(tensor)) {
    if (tensor.shape.size() != 2 || tensor.shape[0] == 0) return split_over(bytes, tp);
    const uint64_t rows = tensor.shape[0];
    const uint64_t padded = (rows + k_vocab_padding - 1) / k_vocab_padding * k_vocab_padding;
    return split_over(bytes / rows * padded, tp);
  }
  if (tp == 1 || is_replicated(tensor)) return bytes;
  if (is_key_or_value(tensor) && config.kv_heads != 0 && config.kv_lora_rank == 0)
    return split_over(bytes, std::min(tp, config.kv_heads));
  return split_over(bytes, tp);
}

// fp32 files are loaded in the half type that the engine computes in.
uint64_t loaded_bytes(const Tensor& tensor, const formats::DecoderConfig& config) {
  const bool plain =
      config.quantisation.empty() && tensor.dtype == "F32" && tensor.shape.size() > 1;
  return plain && !named(tensor, "A_log") ? tensor.bytes / 2 : tensor.bytes;
}

void add_types(std::span<const Tensor> tensors, ServedWeights& out) {
  std::map<std::string, uint64_t> types;
  for (const Tensor& tensor : tensors) types[tensor.dtype] += tensor.bytes;
  out.types.assign(types.begin(), types.end());
  std::stable_sort(out.types.begin(), out.types.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

// Whole layers on each GPU, in the order of the file; the embedding stays with the CPU, and a tied
// output is a second copy of it.
ServedWeights ggml_weights(const ServedModel& model, std::span<const Tensor> tensors,
                           uint64_t gpus) {
  ServedWeights out;
  std::map<uint64_t, uint64_t> layers;
  for (const Tensor& tensor : tensors) {
    out.bytes = capped(out.bytes, tensor.bytes);
    const bool embedding =
        starts_with(tensor.name, "token_embd") || starts_with(tensor.name, "per_layer_token_embd");
    if (embedding) {
      out.host_bytes = capped(out.host_bytes, tensor.bytes);
      if (!model.config.tied || !starts_with(tensor.name, "token_embd")) continue;
    }
    const uint64_t layer = layer_of(tensor.name, model.config.layers);
    if (layer > model.config.layers || (layer == model.config.layers && named(tensor, "blk."))) {
      out.left_out = capped(out.left_out, tensor.bytes);
      continue;
    }
    layers[layer] = capped(layers[layer], tensor.bytes);
  }
  uint64_t sum = 0;
  for (const auto& [layer, bytes] : layers) {
    sum = capped(sum, bytes);
    if (layer < model.config.layers) out.layer_bytes = std::max(out.layer_bytes, bytes);
  }
  out.output_bytes = layers[model.config.layers];
  // The last GPU has the output as well.
  const uint64_t each = (model.config.layers + gpus) / gpus;
  const uint64_t last = std::max(out.layer_bytes, out.output_bytes);
  const bool within = out.layer_bytes <= k_most_weights / each;
  out.gpu_bytes = gpus == 1 || !within ? sum : std::min(sum, (each - 1) * out.layer_bytes + last);
  out.bytes -= std::min(out.bytes, out.left_out);
  return out;
}

}  // namespace

Result<ServedWeights> served_weights(const ServedModel& model, std::span<const Tensor> tensors,
                                     Engine engine, uint64_t tp, const std::string& name) {
  ServedWeights out;
  if (tensors.empty()) {
    CUFIT_TRY(bytes, reckoned_weight_bytes(model, name));
    out.reckoned = true;
    out.bytes = bytes;
    out.gpu_bytes = split_over(bytes, tp);
    return out;
  }
  if (engine == Engine::llama_cpp) {
    out = ggml_weights(model, tensors, tp);
    add_types(tensors, out);
    return out;
  }
  for (const Tensor& tensor : tensors) {
    if (is_left_out(tensor, model.config)) {
      out.left_out = capped(out.left_out, tensor.bytes);
      continue;
    }
    const uint64_t bytes = loaded_bytes(tensor, model.config);
    out.cast_bytes = capped(out.cast_bytes, tensor.bytes - bytes);
    out.bytes = capped(out.bytes, bytes);
    const uint64_t each = engine == Engine::transformers
                              ? split_over(bytes, tp)
                              : gpu_bytes_of(tensor, bytes, model.config, tp);
    out.gpu_bytes = capped(out.gpu_bytes, each);
  }
  add_types(tensors, out);
  return out;
}

}  // namespace cufit::fit
