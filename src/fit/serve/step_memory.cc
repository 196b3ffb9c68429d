// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/step_memory.h"

#include <algorithm>

namespace cufit::fit {
namespace {

constexpr double k_step_mib = 1048576;
constexpr uint64_t k_few_sequences = 16;
constexpr uint64_t k_llama_step = 512;  // tokens of one step of llama.cpp (-ub)

class ServingSizes {
 public:
  ServingSizes(const knowledge::Knowledge& knowledge, Engine engine, bool upper)
      : knowledge_(knowledge), engine_(engine), upper_(upper) {}
  double operator()(std::string_view of) const {
    return serving_size(knowledge_, engine_, of, upper_);
  }

 private:
  const knowledge::Knowledge& knowledge_;
  const Engine engine_;
  const bool upper_;
};

double wide_of(const formats::DecoderConfig& config, uint64_t tp) {
  const double own = static_cast<double>(config.intermediate);
  const double shared = static_cast<double>(config.shared_intermediate +
                                            config.shared_experts * config.expert_intermediate);
  const double wide =
      config.experts != 0 && shared != 0 ? std::max(shared, own * (config.first_dense != 0)) : own;
  return wide / static_cast<double>(tp);
}

// Three buffers of the experts' kernel, two of which share their bytes; they stay.
double expert_workspace(const formats::DecoderConfig& config, uint64_t tp, double tokens) {
  if (config.experts == 0) return 0;
  const uint64_t each =
      config.expert_intermediate != 0 ? config.expert_intermediate : config.intermediate;
  const double wide = static_cast<double>(each) / static_cast<double>(tp);
  return tokens * static_cast<double>(std::max<uint64_t>(1, config.experts_used)) *
         (std::max(2 * wide, static_cast<double>(config.hidden)) + wide) * 2;
}

double vllm_activation(const formats::DecoderConfig& config, uint64_t tp,
                       const StepSettings& settings, const ServingSizes& size) {
  const double tokens = static_cast<double>(settings.batched_tokens);
  const double state = tokens * static_cast<double>(config.hidden);
  const double logits = static_cast<double>(settings.sequences) * static_cast<double>(config.vocab);
  const double sampler = logits * size("logit_bytes") + state * size("hidden_bytes");
  const double layer =
      state * size("layer_hidden_bytes") + tokens * wide_of(config, tp) * size("wide_bytes");
  return std::max(sampler, layer) + expert_workspace(config, tp, tokens) +
         (config.has_pictures ? size("pictures_mib") * k_step_mib : 0);
}

double sglang_activation(const StepSettings& settings, uint64_t tp, const ServingSizes& size) {
  const double tokens = std::max(2048.0, static_cast<double>(settings.batched_tokens));
  return (size("step_mib") + tokens * size("token_mib") + static_cast<double>(tp) / 8 * 1024) *
         k_step_mib;
}

// With its flash attention; without it the scores come on top, and the answer says so.
double llama_activation(const formats::DecoderConfig& config) {
  const double rows = static_cast<double>(k_llama_step) * 4;
  const double output = static_cast<double>(config.vocab + config.hidden);
  const double layer = static_cast<double>(4 * config.hidden + 3 * config.intermediate);
  return rows * std::max(output, layer);
}

double transformers_activation(const formats::DecoderConfig& config, const StepSettings& settings,
                               const ServingSizes& size) {
  const double tokens =
      static_cast<double>(settings.batched_tokens) * static_cast<double>(settings.sequences);
  const double experts =
      config.experts == 0 ? 0
                          : static_cast<double>(config.experts_used * config.expert_intermediate);
  const double wide = std::max(wide_of(config, 1), experts);
  const double logits =
      static_cast<double>(settings.sequences) * static_cast<double>(config.vocab) * 12;
  return tokens * (static_cast<double>(config.hidden) * size("hidden_bytes") +
                   wide * size("wide_bytes")) +
         logits;
}

// Of a prompt longer than a window transformers makes a mask, a byte for each query and key, and
// attention takes it in a half type. Without a window it needs none.
double transformers_mask(const ServedModel& model, const StepSettings& settings,
                         const ServingSizes& size) {
  const bool cut =
      std::any_of(model.cache.begin(), model.cache.end(), [&](const CacheLayer& layer) {
        return (layer.kind == CacheKind::window || layer.kind == CacheKind::chunk) &&
               layer.window < settings.batched_tokens;
      });
  const auto tokens = static_cast<double>(settings.batched_tokens);
  return cut ? tokens * tokens * static_cast<double>(settings.sequences) * size("mask_bytes") : 0;
}

double activation_of(const formats::DecoderConfig& config, Engine engine, uint64_t tp,
                     const StepSettings& settings, const ServingSizes& size) {
  switch (engine) {
    case Engine::vllm:
      return vllm_activation(config, tp, settings, size);
    case Engine::sglang:
      return sglang_activation(settings, tp, size);
    case Engine::llama_cpp:
      return llama_activation(config);
    default:
      return transformers_activation(config, settings, size);
  }
}

double other_of(Engine engine, uint64_t tp, const StepSettings& settings,
                const ServingSizes& size) {
  const bool collective = tp > 1 && (engine == Engine::vllm || engine == Engine::sglang);
  double sum = size(collective ? "beside_tp_mib" : "beside_mib");
  if (settings.graphs && engine == Engine::vllm)
    sum += size(settings.sequences <= k_few_sequences ? "graphs_few_mib" : "graphs_mib");
  if (settings.graphs && engine == Engine::sglang)
    sum += static_cast<double>(settings.sequences) * size("graph_sequence_mib");
  return sum * k_step_mib;
}

}  // namespace

std::string_view engine_name(Engine engine) {
  switch (engine) {
    case Engine::vllm:
      return "vllm";
    case Engine::sglang:
      return "sglang";
    case Engine::llama_cpp:
      return "llama.cpp";
    default:
      return "transformers";
  }
}

double serving_size(const knowledge::Knowledge& knowledge, Engine engine, std::string_view of,
                    bool upper) {
  for (const knowledge::ServingSizeRow& row : knowledge.serving_sizes)
    if (row.engine == engine_name(engine) && row.of == of) return upper ? row.upper : row.value;
  return 0;
}

StepMemory step_memory(const ServedModel& model, Engine engine, uint64_t tp,
                       const StepSettings& settings, const knowledge::Knowledge& knowledge) {
  StepMemory out;
  const ServingSizes usual(knowledge, engine, false), upper(knowledge, engine, true);
  const auto whole = [](double bytes) { return static_cast<uint64_t>(std::min(bytes, 4e18)); };
  out.activation = {whole(activation_of(model.config, engine, tp, settings, usual)),
                    whole(activation_of(model.config, engine, tp, settings, upper))};
  if (engine == Engine::transformers) {
    out.activation.usual += whole(transformers_mask(model, settings, usual));
    out.activation.upper += whole(transformers_mask(model, settings, upper));
  }
  out.other = {whole(other_of(engine, tp, settings, usual)),
               whole(other_of(engine, tp, settings, upper))};
  return out;
}

}  // namespace cufit::fit
