// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/kv_cache.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/largest_that.h"
#include "formats/model/ggml_type.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_vllm_page = 16, k_vllm_latent_page = 64;  // tokens
constexpr uint64_t k_llama_pad = 256, k_llama_ubatch = 512;    // cells
// Shares of sglang's pool: windowed layers hold so many tokens of a full one, states so much beside
// one part of keys and values. Defaults of its 0.5.
constexpr double k_sglang_window_share = 0.8, k_sglang_state_share = 0.9;
constexpr uint64_t k_sglang_state_slots = 3;  // of a running sequence; one more serves none
constexpr uint64_t k_most_search = uint64_t{1} << 40, k_most_cache = uint64_t{1} << 62;

uint64_t blocks_of(uint64_t value, uint64_t step) { return (value + step - 1) / step; }

// What is beyond 64 bits fits nowhere.
uint64_t times(uint64_t a, uint64_t b) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}

// KV heads on one GPU: never below one, so they are replicated on more GPUs than there are.
uint64_t heads_of_rank(uint64_t heads, uint64_t tp) { return std::max<uint64_t>(1, heads / tp); }

// Of transformers, which keeps DeepSeek's keys and values as any others.
uint64_t unpacked_latent(const ServedModel& model) {
  const formats::DecoderConfig& config = model.config;
  const uint64_t value = config.value_head_dim != 0 ? config.value_head_dim : config.nope_head_dim;
  return config.heads * (config.nope_head_dim + config.rope_head_dim + value);
}

// With sparse attention (DeepSeek V3.2) vLLM and sglang keep the vector in fp8 with a scale in fp32
// for every 128 elements, and the rotated part in bf16: 656 bytes.
uint64_t sparse_fp8_bytes(const formats::DecoderConfig& config) {
  return config.kv_lora_rank + blocks_of(config.kv_lora_rank, 128) * 4 + 2 * config.rope_head_dim;
}

uint64_t layer_token_bytes(const ServedModel& model, const CacheLayer& layer,
                           const CacheSettings& settings, uint64_t tp) {
  if (layer.kind == CacheKind::state) return 0;
  if (layer.kind == CacheKind::latent) {
    if (settings.engine == Engine::transformers && model.config.nope_head_dim != 0)
      return settings.type.bytes(unpacked_latent(model));
    if (settings.engine == Engine::transformers) return settings.type.bytes(layer.key_dim);
    if (layer.index_bytes != 0 && settings.type.block_bytes == 1)
      return sparse_fp8_bytes(model.config) + layer.index_bytes;
    return settings.type.bytes(layer.key_dim) + layer.index_bytes;
  }
  const uint64_t heads = heads_of_rank(layer.kv_heads, tp);
  return settings.type.bytes(heads * layer.key_dim) + settings.type.bytes(heads * layer.value_dim);
}

uint64_t layer_state_bytes(const CacheLayer& layer, const CacheSettings& settings, uint64_t tp) {
  if (layer.kind != CacheKind::state) return 0;
  if (settings.engine == Engine::llama_cpp) return 4 * (layer.conv_elements + layer.state_elements);
  uint64_t conv = layer.conv_elements;
  if (layer.replicated_conv != 0) {  // groups are repeated until each GPU has one
    const uint64_t groups = std::max<uint64_t>(1, layer.kv_heads);
    if (groups % tp != 0 && groups < tp) conv += (tp - groups) * layer.replicated_conv;
  }
  return blocks_of(conv, tp) * 2 + blocks_of(layer.state_elements, tp) * layer.state_element_bytes;
}

}  // namespace

std::optional<CacheType> cache_type(Engine engine, std::string_view name) {
  if (name == "auto") return CacheType{"auto", 1, 2};
  if (engine == Engine::llama_cpp) {
    static constexpr std::string_view k_taken[] = {"f32",  "f16",    "bf16", "q8_0", "q4_0",
                                                   "q4_1", "iq4_nl", "q5_0", "q5_1"};
    for (const std::string_view known : k_taken)
      if (known == name)
        if (const formats::GgmlType* type = formats::ggml_type(name))
          return CacheType{std::string(name), type->block, type->block_bytes};
    return std::nullopt;
  }
  if (engine == Engine::transformers) return std::nullopt;
  const bool eight = name == "fp8" || name == "fp8_e4m3" || name == "fp8_e5m2";
  if (eight && engine == Engine::sglang && name == "fp8") return std::nullopt;  // it names the kind
  if (eight) return CacheType{std::string(name), 1, 1};
  if (name == "bfloat16" && engine == Engine::vllm) return CacheType{"bfloat16", 1, 2};
  return std::nullopt;
}

uint64_t token_bytes(const ServedModel& model, const CacheSettings& settings) {
  uint64_t sum = 0;
  for (const CacheLayer& layer : model.cache) sum += layer_token_bytes(model, layer, settings, 1);
  return sum;
}

uint64_t far_token_bytes(const ServedModel& model, const CacheSettings& settings) {
  if (settings.engine == Engine::transformers) return token_bytes(model, settings);
  uint64_t sum = 0;
  for (const CacheLayer& layer : model.cache)
    if (layer.kind == CacheKind::full || layer.kind == CacheKind::latent)
      sum += layer_token_bytes(model, layer, settings, 1);
  return sum;
}

uint64_t state_bytes(const ServedModel& model, const CacheSettings& settings) {
  uint64_t sum = 0;
  for (const CacheLayer& layer : model.cache) sum += layer_state_bytes(layer, settings, 1);
  return sum;
}

CacheUse::CacheUse(const ServedModel& model, const CacheSettings& settings) : settings_(settings) {
  // llama.cpp spreads whole layers; the fullest GPU has one more than the others.
  const bool by_layers =
      settings.engine == Engine::llama_cpp || settings.engine == Engine::transformers;
  const uint64_t tp = by_layers ? 1 : settings.tp;
  for (const CacheLayer& layer : model.cache)
    layers_.push_back({layer.kind, layer.window, layer_token_bytes(model, layer, settings, tp),
                       layer_state_bytes(layer, settings, tp)});
  if (by_layers && settings.tp > 1) {
    std::stable_sort(layers_.begin(), layers_.end(), [](const Layer& a, const Layer& b) {
      return std::tie(a.token_bytes, a.state_bytes) > std::tie(b.token_bytes, b.state_bytes);
    });
    std::vector<Layer> first;
    for (size_t i = 0; i < layers_.size(); i += settings.tp) first.push_back(layers_[i]);
    layers_ = std::move(first);
  }
  if (settings.engine != Engine::vllm) return;
  const bool latent = std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
    return layer.kind == CacheKind::latent;
  });
  page_tokens_ = latent ? k_vllm_latent_page : k_vllm_page;
  const bool alike = std::all_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
    const bool all = layer.kind == CacheKind::full || layer.kind == CacheKind::latent;
    const Layer& first = layers_.front();
    const bool first_all = first.kind == CacheKind::full || first.kind == CacheKind::latent;
    return all ? first_all : layer.kind == first.kind && layer.window == first.window;
  });
  alike ? one_group() : several_groups();
}

void CacheUse::one_group() {
  Group group{layers_.front().kind, layers_.front().window, page_tokens_};
  for (const Layer& layer : layers_)
    block_bytes_ +=
        layer.kind == CacheKind::state ? layer.state_bytes : layer.token_bytes * page_tokens_;
  groups_.push_back(group);
}

// Layers of different kinds draw blocks of one size from one pool: pages are made as large as the
// largest, and the layers put into groups of equal number.
void CacheUse::several_groups() {
  uint64_t largest_state = 0, least_token = 0, page = 0;
  for (const Layer& layer : layers_) {
    largest_state = std::max(largest_state, layer.state_bytes);
    if (layer.token_bytes != 0 && (least_token == 0 || layer.token_bytes < least_token))
      least_token = layer.token_bytes;
  }
  if (largest_state != 0 && least_token != 0)
    page_tokens_ =
        std::max(page_tokens_, page_tokens_ * blocks_of(largest_state, page_tokens_ * least_token));
  for (const Layer& layer : layers_)
    page = std::max({page, layer.token_bytes * page_tokens_, layer.state_bytes});
  std::map<std::tuple<CacheKind, uint64_t, uint64_t>, uint64_t>
      buckets;  // kind, window, page tokens
  for (const Layer& layer : layers_) {
    uint64_t tokens = page_tokens_;
    const uint64_t own = layer.token_bytes * page_tokens_;
    if (own != 0 && page % own == 0) tokens *= page / own;
    ++buckets[{layer.kind == CacheKind::latent ? CacheKind::full : layer.kind, layer.window,
               tokens}];
  }
  uint64_t least = std::numeric_limits<uint64_t>::max(), most = 0;
  for (const auto& [key, count] : buckets) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  const uint64_t size = most * 2 < least * 3 ? most : least;
  for (const auto& [key, count] : buckets)
    for (uint64_t i = 0; i < blocks_of(count, size); ++i)
      groups_.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  block_bytes_ = size * page;
}

uint64_t CacheUse::blocks(const Group& group, uint64_t context) const {
  const uint64_t in_flight = settings_.batches_in_flight * settings_.batched_tokens;
  switch (group.kind) {
    case CacheKind::state:
      return groups_.size() == 1 ? 1 : settings_.states;
    case CacheKind::window:
      return blocks_of(
                 std::min(group.window - std::min<uint64_t>(group.window, 1) + in_flight, context),
                 group.page_tokens) +
             1;
    case CacheKind::chunk:
      return blocks_of(std::min(group.window + in_flight, context), group.page_tokens);
    default:
      return blocks_of(context, group.page_tokens);
  }
}

uint64_t CacheUse::request_blocks(uint64_t context) const {
  uint64_t sum = 0;
  for (const Group& group : groups_) sum += blocks(group, context);
  return sum;
}

uint64_t CacheUse::plain_bytes(uint64_t context, uint64_t sequences) const {
  const bool llama = settings_.engine == Engine::llama_cpp;
  const uint64_t cells = llama ? blocks_of(context, k_llama_pad) * k_llama_pad : context;
  uint64_t sum = 0;
  for (const Layer& layer : layers_) {
    uint64_t held = cells;
    // transformers keeps a window as a view of the whole prompt's keys, which lie there until the
    // next token.
    if (llama && (layer.kind == CacheKind::window || layer.kind == CacheKind::chunk))
      held = blocks_of(std::min(cells, layer.window + k_llama_ubatch), k_llama_pad) * k_llama_pad;
    const uint64_t layer_bytes = times(held, layer.token_bytes);
    sum = std::min(sum, k_most_cache) + std::min(layer_bytes, k_most_cache) + layer.state_bytes;
  }
  return times(sum, sequences);
}

// sglang: one pool of tokens; windowed layers have a pool beside it, states take a share of all.
uint64_t CacheUse::pooled_bytes(uint64_t context, uint64_t sequences) const {
  uint64_t full = 0, window = 0, state = 0;
  for (const Layer& layer : layers_) {
    (layer.kind == CacheKind::window || layer.kind == CacheKind::chunk ? window : full) +=
        layer.token_bytes;
    state += layer.state_bytes;
  }
  const double each = static_cast<double>(full) +
                      static_cast<double>(window) * (full == 0 ? 1 : k_sglang_window_share);
  double sum = each * static_cast<double>(context) * static_cast<double>(sequences);
  if (state != 0) {
    const double states =
        static_cast<double>(state) * (static_cast<double>(sequences) * k_sglang_state_slots + 1);
    sum = full + window == 0 ? states
                             : std::max(sum * (1 + k_sglang_state_share),
                                        states * (1 + k_sglang_state_share) / k_sglang_state_share);
  }
  return static_cast<uint64_t>(std::min(sum, 9e18));
}

uint64_t CacheUse::bytes(uint64_t context, uint64_t sequences) const {
  if (settings_.engine == Engine::vllm)
    return times(times(request_blocks(context), block_bytes_), sequences);
  if (settings_.engine == Engine::sglang) return pooled_bytes(context, sequences);
  return plain_bytes(context, sequences);
}

uint64_t CacheUse::largest_context(uint64_t available, uint64_t sequences, uint64_t most) const {
  return largest_that(std::min(most, k_most_search),
                      [&](uint64_t context) { return bytes(context, sequences) <= available; });
}

uint64_t CacheUse::most_sequences(uint64_t available, uint64_t context) const {
  if (settings_.engine == Engine::vllm) {
    const uint64_t pool = block_bytes_ == 0 ? 0 : available / block_bytes_;
    return pool / std::max<uint64_t>(1, request_blocks(context));
  }
  return largest_that(uint64_t{1} << 20,
                      [&](uint64_t sequences) { return bytes(context, sequences) <= available; });
}

uint64_t CacheUse::sequence_limit(uint64_t available) const {
  const bool states = std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return group.kind == CacheKind::state;
  });
  return states && block_bytes_ != 0 ? available / block_bytes_ : 0;
}

double CacheUse::concurrency(uint64_t available, uint64_t context) const {
  const uint64_t blocks_of_one = request_blocks(context);
  if (block_bytes_ == 0 || blocks_of_one == 0) return 0;
  return static_cast<double>(available / block_bytes_) / static_cast<double>(blocks_of_one);
}

uint64_t CacheUse::tokens(uint64_t available) const {
  if (settings_.engine != Engine::vllm || block_bytes_ == 0)
    return largest_context(available, 1, k_most_search);
  return available / block_bytes_ / groups_.size() * page_tokens_;
}

}  // namespace cufit::fit
