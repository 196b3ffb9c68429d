// SPDX-License-Identifier: Apache-2.0
// The metadata of a GGUF file under the names of DecoderConfig.
#include <algorithm>

#include "base/format.h"
#include "formats/model/decoder_config.h"

namespace cufit::formats {
namespace {

constexpr uint64_t k_gguf_most_layers = 4096, k_gguf_most_size = uint64_t{1} << 20;
constexpr uint64_t k_gguf_longest_context = uint64_t{1} << 32;

class GgufDecoder {
 public:
  GgufDecoder(const Gguf& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  uint64_t number(const char* key, uint64_t most = k_gguf_most_size) {
    const uint64_t value = file_.number(prefix_ + key);
    if (value > most) wrong_ = prefix_ + key;
    return value > most ? 0 : value;
  }
  std::vector<uint64_t> numbers(const char* key) {
    const GgufValue* value = file_.find(prefix_ + key);
    if (value == nullptr || value->kind != GgufValue::Kind::numbers) return {};
    for (const uint64_t one : value->numbers)
      if (one > k_gguf_most_size) wrong_ = prefix_ + key;
    return wrong_.empty() ? value->numbers : std::vector<uint64_t>();
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Gguf& file_;
  const std::string prefix_;
  std::string wrong_;
};

void sizes_of_gguf(GgufDecoder& in, DecoderConfig& out) {
  out.layers = in.number("block_count");
  out.next_token_layers = in.number("nextn_predict_layers");
  if (out.next_token_layers < out.layers) out.layers -= out.next_token_layers;
  out.hidden = in.number("embedding_length");
  out.intermediate = in.number("feed_forward_length");
  if (const auto list = in.numbers("feed_forward_length"); !list.empty())
    out.intermediate = *std::max_element(list.begin(), list.end());
  out.max_length = in.number("context_length", k_gguf_longest_context);
  out.heads = in.number("attention.head_count");
  if (const auto list = in.numbers("attention.head_count"); !list.empty())
    out.heads = *std::max_element(list.begin(), list.end());
  out.kv_heads = in.number("attention.head_count_kv");
  out.kv_heads_by_layer = in.numbers("attention.head_count_kv");
  out.head_dim = in.number("attention.key_length");
  out.value_head_dim = in.number("attention.value_length");
  // Files of before 2025-04 hold keys and values unpacked; later ones say the length of both forms.
  if (in.number("attention.key_length_mla") != 0) {
    out.kv_lora_rank = in.number("attention.kv_lora_rank");
    out.rope_head_dim = in.number("rope.dimension_count");
  }
  out.q_lora_rank = in.number("attention.q_lora_rank");
  out.experts = in.number("expert_count");
  out.experts_used = in.number("expert_used_count");
  out.expert_intermediate = in.number("expert_feed_forward_length");
}

void windows_of_gguf(GgufDecoder& in, DecoderConfig& out) {
  out.window = in.number("attention.sliding_window", k_gguf_longest_context);
  out.window_period = in.number("attention.sliding_window_pattern");
  const std::vector<uint64_t> sliding = in.numbers("attention.sliding_window_pattern");
  for (const uint64_t one : sliding)
    out.layer_types.push_back(one != 0 ? "sliding_attention" : "full_attention");
  out.shared_kv_layers = in.number("attention.shared_kv_layers");
  out.full_attention_interval = in.number("full_attention_interval");
  out.conv_kernel = in.number("ssm.conv_kernel");
  out.state_size = in.number("ssm.state_size");
  out.state_inner = in.number("ssm.inner_size");
  out.state_groups = in.number("ssm.group_count");
  out.state_heads = in.number("ssm.time_step_rank");
  // llama.cpp computes these without their window.
  if (out.model_type == "llama" || out.model_type == "phi3") out.window = 0;
  if (out.state_inner == 0 || !out.layer_types.empty() || out.full_attention_interval != 0) return;
  // Of a hybrid, layers without KV heads are recurrent, or an MLP alone.
  const std::vector<uint64_t> wide = in.numbers("feed_forward_length");
  const char* recurrent = starts_with(out.model_type, "qwen3") ? "linear_attention" : "mamba2";
  for (size_t i = 0; i < out.kv_heads_by_layer.size() && i < out.layers; ++i)
    out.layer_types.push_back(
        out.kv_heads_by_layer[i] != 0                                             ? "attention"
        : i < wide.size() && wide[i] != 0 && contains(out.model_type, "nemotron") ? "mlp"
                                                                                  : recurrent);
}

}  // namespace

Result<DecoderConfig> decoder_config_of(const Gguf& file, const std::string& name) {
  DecoderConfig out;
  out.model_type = file.text("general.architecture");
  if (out.model_type.empty())
    return fail(Code::malformed, format("{}: no `general.architecture`", name));
  GgufDecoder in(file, out.model_type + ".");
  sizes_of_gguf(in, out);
  windows_of_gguf(in, out);
  out.tied = true;
  out.tied_said = true;
  for (const Tensor& tensor : file.tensors) {
    if (tensor.name == "output.weight") out.tied = false;
    if (tensor.name == "token_embd.weight" && tensor.shape.size() == 2)
      out.vocab = std::min(tensor.shape[1], uint64_t{1} << 26);
  }
  if (!in.wrong().empty())
    return fail(Code::malformed, format("{}: `{}` is beyond any model", name, in.wrong()));
  if (out.layers > k_gguf_most_layers)
    return fail(Code::malformed, format("{}: {} layers", name, out.layers));
  return out;
}

}  // namespace cufit::formats
