// SPDX-License-Identifier: Apache-2.0
#include "formats/model/decoder_config.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

// Of a size, of a length in tokens, of the vocabulary: what is beyond them is no model.
constexpr uint64_t k_decoder_most = uint64_t{1} << 20,
                   k_decoder_longest_context = uint64_t{1} << 32;
constexpr uint64_t k_decoder_most_layers = 4096;
constexpr size_t k_decoder_text = 4096;
constexpr double k_decoder_most_factor = 1e6;  // of stretched positions

// Where the text model's members stand in the config of a model of several parts.
constexpr const char* k_text_parts[] = {"text_config", "llm_config", "language_config",
                                        "thinker_config"};

class DecoderReader {
 public:
  DecoderReader(const Json& root, const std::string& name) : root_(root), name_(name) {
    parts_.push_back(&root_);
    for (int depth = 0; depth < 2; ++depth)
      for (const char* key : k_text_parts)
        if (const Json* part = parts_.back()->member(key); part != nullptr && part->is_object())
          parts_.push_back(part);
  }

  Result<DecoderConfig> run() {
    names();
    quantisation();
    sizes();
    heads();
    positions();
    layers();
    recurrent();
    experts();
    if (!wrong_.empty()) return fail(Code::malformed, format("{}: {}", name_, wrong_));
    if (out_.vocab > uint64_t{1} << 26)
      return fail(Code::malformed, format("{}: a vocabulary of {}", name_, out_.vocab));
    if (out_.layers > k_decoder_most_layers)
      return fail(Code::malformed, format("{}: {} layers", name_, out_.layers));
    return std::move(out_);
  }

 private:
  // The innermost part says it.
  const Json* find(const char* key) const {
    for (size_t i = parts_.size(); i-- > 0;)
      if (const Json* found = parts_[i]->member(key); found != nullptr && !found->is_null())
        return found;
    return nullptr;
  }
  uint64_t value_of(const Json& value, const char* key, uint64_t most = k_decoder_most) {
    if (value.is_boolean()) return value.boolean() ? 1 : 0;
    if (!value.is_number()) return 0;
    if (value.number() < 0) return 0;
    if (value.number() > static_cast<double>(most)) {
      wrong_ = format("`{}` is beyond any model", key);
      return 0;
    }
    return value.natural();
  }
  // The first of several names that is there and not 0.
  template <class... Keys>
  uint64_t number(Keys... keys) {
    for (const char* key : {keys...})
      if (const Json* found = find(key))
        if (const uint64_t value = value_of(*found, key); value != 0) return value;
    return 0;
  }
  template <class... Keys>
  uint64_t tokens(Keys... keys) {
    for (const char* key : {keys...})
      if (const Json* found = find(key))
        if (const uint64_t value = value_of(*found, key, k_decoder_longest_context); value != 0)
          return value;
    return 0;
  }
  std::string text(const char* key) const {
    const Json* found = find(key);
    return found != nullptr && found->is_string() ? printable(found->text(), k_decoder_text)
                                                  : std::string();
  }
  std::vector<uint64_t> numbers(const char* key) {
    std::vector<uint64_t> out;
    if (const Json* found = find(key); found != nullptr && found->is_array())
      for (const Json& one : *found)
        if (out.size() < k_decoder_most_layers) out.push_back(value_of(one, key));
    return out;
  }

  void names() {
    if (const Json* list = root_.member("architectures"); list != nullptr && list->size() != 0)
      out_.architecture = printable((*list)[0].text(), 256);
    out_.model_type = text("model_type");
    out_.dtype = text("dtype").empty() ? text("torch_dtype") : text("dtype");
    for (const char* key : {"vision_config", "audio_config", "visual", "vision_tower"})
      out_.has_pictures = out_.has_pictures || root_.contains(key);
    if (const Json* tied = find("tie_word_embeddings"); tied != nullptr && tied->is_boolean()) {
      out_.tied = tied->boolean();
      out_.tied_said = true;
    }
  }

  void quantisation() {
    for (const char* key : {"quantization_config", "compression_config"})
      if (const Json* found = find(key); found != nullptr && found->is_object()) {
        out_.quantisation = printable(found->text_at("quant_method"), 64);
        if (out_.quantisation.empty()) out_.quantisation = "unknown";
        const Json* scheme = found->member("kv_cache_scheme");
        if (scheme != nullptr && scheme->is_object()) out_.kv_dtype = "fp8";
        const std::string kind = lower(found->text_at("kv_cache_quant_algo"));
        if (kind == "fp8") out_.kv_dtype = "fp8";
        const Json* block = found->member("weight_block_size");
        if (block == nullptr || !block->is_array() || block->size() != 2) continue;
        out_.block_rows = value_of((*block)[0], "weight_block_size");
        out_.block_columns = value_of((*block)[1], "weight_block_size");
        out_.block_attention = !leaves_attention(*found);
      }
  }
  // Whether a quantisation says that it leaves attention alone.
  static bool leaves_attention(const Json& quantisation) {
    for (const char* key : {"modules_to_not_convert", "ignored_layers", "ignore"})
      if (const Json* list = quantisation.member(key); list != nullptr && list->is_array())
        for (const Json& one : *list)
          if (one.is_string() && (contains(one.text(), "attn") || contains(one.text(), "q_proj")))
            return true;
    return false;
  }

  void sizes() {
    out_.layers = number("num_hidden_layers", "n_layer", "num_layers", "n_layers");
    out_.hidden = number("hidden_size", "n_embd", "d_model");
    out_.intermediate = number("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size");
    out_.vocab = tokens("vocab_size", "padded_vocab_size");
    out_.per_layer_input = number("hidden_size_per_layer_input");
  }

  // The least of what is said, as vLLM takes it; the one name outdoes all.
  void positions() {
    for (const char* key : {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
                            "max_sequence_length", "max_seq_length", "seq_len"})
      if (const uint64_t said = tokens(key); said != 0)
        out_.max_length = out_.max_length == 0 ? said : std::min(out_.max_length, said);
    if (const uint64_t own = tokens("model_max_length"); own != 0) out_.max_length = own;
    out_.original_length = tokens("original_max_position_embeddings");
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const Json* found = find(key);
      if (found == nullptr || !found->is_object()) continue;
      stretch(*found);
      // Some say it for each kind of layer.
      for (const char* kind : {"full_attention", "sliding_attention"})
        if (const Json* part = found->member(kind); part != nullptr && part->is_object())
          stretch(*part);
    }
  }
  void stretch(const Json& rope) {
    std::string type = rope.text_at("rope_type");
    if (type.empty()) type = rope.text_at("type");
    if (type.empty() || type == "default" || type == "mrope") return;
    out_.rope_type = printable(type, 64);
    if (const Json* factor = rope.member("factor"); factor != nullptr && factor->is_number())
      out_.rope_factor = std::clamp(factor->number(), 0.0, k_decoder_most_factor);
    if (const Json* first = rope.member("original_max_position_embeddings"); first != nullptr)
      out_.rope_original =
          value_of(*first, "original_max_position_embeddings", k_decoder_longest_context);
  }

  void heads() {
    out_.heads = number("num_attention_heads", "n_head", "n_heads");
    out_.head_dim = number("head_dim", "kv_channels", "attention_head_dim");
    out_.value_head_dim = number("v_head_dim");
    if (const Json* found = find("num_key_value_heads"); found != nullptr && found->is_array())
      out_.kv_heads_by_layer = numbers("num_key_value_heads");
    else
      out_.kv_heads =
          number("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num");
    if (one_key_head()) out_.kv_heads = 1;
    out_.global_head_dim = number("global_head_dim");
    out_.global_kv_heads = number("num_global_key_value_heads");
    out_.kv_lora_rank = number("kv_lora_rank");
    out_.rope_head_dim = number("qk_rope_head_dim");
    out_.nope_head_dim = number("qk_nope_head_dim");
    out_.q_lora_rank = number("q_lora_rank");
    out_.index_head_dim = number("index_head_dim");
    out_.index_heads = number("index_n_heads");
  }
  // All queries share one head: of Falcon unless it is said otherwise, whatever `num_kv_heads` says,
  // but not of its second architecture.
  bool one_key_head() {
    const bool falcon = out_.model_type == "falcon" || starts_with(out_.model_type, "RefinedWeb");
    if (falcon && number("new_decoder_architecture") != 0) return false;
    const Json* said = find("multi_query");
    return said == nullptr ? falcon : number("multi_query") != 0;
  }

  void layers() {
    out_.window = tokens("sliding_window", "sliding_window_size", "window_size");
    out_.chunk = tokens("attention_chunk_size");
    const Json* use = find("use_sliding_window");
    const bool off_unsaid = starts_with(out_.model_type, "qwen") || out_.model_type == "smollm3";
    out_.window_off = use != nullptr && use->is_boolean() ? !use->boolean() : off_unsaid;
    if (const Json* pattern = find("sliding_window_pattern"))
      out_.window_period = pattern->is_number() ? number("sliding_window_pattern") : 0;
    out_.first_window_layer = number("max_window_layers");
    for (const char* key : {"layer_types", "layers_block_type", "block_types"})
      if (const Json* found = find(key); found != nullptr && found->is_array()) {
        for (const Json& one : *found)
          if (out_.layer_types.size() < k_decoder_most_layers)
            out_.layer_types.push_back(printable(one.text(), 64));
        break;
      }
    out_.pattern = text("hybrid_override_pattern");
    out_.attention_period = number("attn_layer_period");
    out_.attention_offset = number("attn_layer_offset");
    out_.full_attention_interval = number("full_attention_interval");
    out_.attention_layers = numbers("attn_layer_indices");
    if (out_.attention_layers.empty()) out_.attention_layers = numbers("full_attn_idxs");
    out_.no_rope_layers = numbers("no_rope_layers");
    out_.dense_layers = numbers("mlp_only_layers");
    out_.shared_kv_layers = number("num_kv_shared_layers");
    out_.next_token_layers = number("num_nextn_predict_layers", "mtp_num_hidden_layers");
  }

  void recurrent() {
    out_.linear_key_heads = number("linear_num_key_heads");
    out_.linear_value_heads = number("linear_num_value_heads");
    out_.linear_key_dim = number("linear_key_head_dim");
    out_.linear_value_dim = number("linear_value_head_dim");
    out_.conv_kernel =
        number("linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel", "d_conv", "conv_L_cache");
    out_.state_size = number("mamba_d_state", "ssm_state_size", "state_size", "d_state");
    out_.state_expand = number("mamba_expand", "expand");
    out_.state_heads = number("mamba_n_heads", "mamba_num_heads", "mamba_nheads");
    out_.state_head_dim = number("mamba_d_head", "mamba_head_dim", "mamba_headdim");
    out_.state_groups = number("mamba_n_groups", "mamba_ngroups", "n_groups");
    out_.state_dtype = text("mamba_ssm_dtype");
    if (out_.state_dtype.empty()) out_.state_dtype = text("mamba_ssm_cache_dtype");
  }

  void experts() {
    out_.experts =
        number("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts");
    out_.experts_used = number("num_experts_per_tok", "moe_topk", "top_k_experts");
    out_.expert_intermediate = number("moe_intermediate_size", "expert_intermediate_size");
    out_.shared_intermediate =
        number("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
               "shared_intermediate_size", "intermediate_size_mlp");
    out_.shared_experts = number("n_shared_experts", "num_shared_experts");
    out_.first_dense = number("first_k_dense_replace", "moe_layer_start_index");
    out_.expert_period = number("expert_layer_period", "decoder_sparse_step",
                                "interleave_moe_layer_step", "moe_layer_freq");
    out_.expert_offset = number("expert_layer_offset");
    const std::string act = lower(text("hidden_act"));
    out_.gated = act != "relu2" && out_.model_type != "gpt2" && out_.model_type != "opt" &&
                 out_.model_type != "phi" && out_.model_type != "starcoder2";
  }

  const Json& root_;
  const std::string& name_;
  std::vector<const Json*> parts_;
  DecoderConfig out_;
  std::string wrong_;
};

}  // namespace

Result<DecoderConfig> parse_decoder_config(std::string_view text, const std::string& name) {
  const Json root = Json::parse(text).value_or(Json());
  if (!root.is_object()) return fail(Code::malformed, format("{}: not an object of JSON", name));
  return DecoderReader(root, name).run();
}

}  // namespace cufit::formats
