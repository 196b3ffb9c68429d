// SPDX-License-Identifier: Apache-2.0
#include "fit/serve/serve_answer.h"

#include <algorithm>

#include "base/format.h"
#include "fit/serve/card_reckoning.h"
#include "fit/serve/context_length.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_serve_most_context = uint64_t{1} << 30;

bool checks_length(Engine engine) { return engine == Engine::vllm || engine == Engine::sglang; }

Result<uint64_t> context_of(const ContextLength& length, const ServeQuestion& question,
                            const std::string& name) {
  if (question.context) {
    if (*question.context > k_serve_most_context)
      return fail(Code::usage,
                  format("`--context {}`: at most {}", *question.context, k_serve_most_context));
    if (checks_length(question.engine) && length.most != 0 && *question.context > length.most)
      return fail(Code::usage, format("`--context {}`: the model is made for {}, and the engine "
                                      "takes no more",
                                      *question.context, length.most));
    return *question.context;
  }
  if (length.usual == 0)
    return fail(Code::usage,
                format("{}: says no length that it is made for; name one with `--context`", name));
  return length.usual;
}

void add_serve_warnings(ServeAnswer& out, const ServedModel& model, const ServeQuestion& question,
                        const ContextLength& length) {
  const auto add = [&](const char* id, std::string detail) {
    out.warnings.emplace_back(id, std::move(detail));
  };
  for (const auto& [id, detail] : model.assumed) add(id.c_str(), detail);
  if (out.weights.reckoned) add("reckoned_weights", "");
  if (out.weights.left_out != 0) add("left_out", format_bytes(out.weights.left_out));
  if (out.weights.cast_bytes != 0) add("cast", format_bytes(out.weights.cast_bytes));
  if (model.config.kv_dtype == "fp8" && question.type.block_bytes == 1) add("checkpoint_fp8", "");
  if (question.tp > 1 && checks_length(question.engine)) {
    if (model.config.kv_lora_rank != 0)
      add("repeated_latent", std::to_string(question.tp));
    else if (model.config.kv_heads != 0 && question.tp > model.config.kv_heads)
      add("repeated_heads", std::to_string(model.config.kv_heads));
  }
  if (question.context && length.most != 0 && *question.context > length.most)
    add("beyond_length", std::to_string(length.most));
  if (question.engine == Engine::llama_cpp && model.config.kv_lora_rank != 0)
    add("llama_latent", "");
  if (question.engine == Engine::llama_cpp) add("flash_attention", "");
  if (model.config.has_pictures) add("pictures", "");
  if (question.engine == Engine::transformers) add("whole_prompt", "");
  if (question.engine == Engine::sglang && out.state_bytes != 0) add("sglang_states", "");
  if (question.engine == Engine::vllm) add("vllm_ranges", "");
}

}  // namespace

bool ServeAnswer::fits() const {
  return std::all_of(cards.begin(), cards.end(),
                     [](const ServeCard& card) { return card.fits || !card.asked; });
}

Result<ServeAnswer> serve_answer(const ServedModel& model, ServedWeights weights,
                                 const ServeQuestion& question,
                                 const knowledge::Knowledge& knowledge, const std::string& name) {
  ServeAnswer out;
  const ContextLength length = context_length(model.config, question.engine);
  CUFIT_TRY(context, context_of(length, question, name));
  out.engine = question.engine;
  out.tp = question.tp;
  out.context = context;
  out.sequences = question.sequences.value_or(1);
  out.type = question.type;
  out.weights = std::move(weights);
  const CacheSettings settings{question.engine, question.type, question.tp, 0};
  out.token_bytes = token_bytes(model, settings);
  out.far_token_bytes = far_token_bytes(model, settings);
  out.state_bytes = state_bytes(model, settings);
  StepSettings usual;
  if (question.engine == Engine::transformers) usual = {context, out.sequences, false};
  out.step = step_memory(model, question.engine, question.tp, usual, knowledge);
  add_serve_warnings(out, model, question, length);
  const uint64_t most = length.most == 0 ? k_serve_most_context : std::max(length.most, context);
  const Serving serving{model, out.weights, question, knowledge, context, out.sequences, most};
  for (const Card& card : question.cards) out.cards.push_back(reckon_card(serving, card));
  return out;
}

}  // namespace cufit::fit
