// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_serve.h"

#include "base/format.h"
#include "base/number.h"
#include "commands/fit/fit_gpus.h"
#include "commands/fit/served_files.h"
#include "fit/serve/serve_answer.h"
#include "report/fit_serve.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_serve_most_gpus = 1024, k_serve_most_sequences = 1u << 20;

Result<std::optional<uint64_t>> whole_number(const char* option,
                                             const std::optional<std::string>& text,
                                             uint64_t most) {
  if (!text) return std::optional<uint64_t>();
  const std::optional<uint64_t> value = parse_uint(*text);
  if (!value || *value == 0 || *value > most)
    return fail(Code::usage, format("`--{} {}`: a number from 1 to {}", option, *text, most));
  return value;
}

Result<fit::Engine> engine_of(const std::optional<std::string>& asked, const ServedFiles& model) {
  if (!asked) return model.gguf ? fit::Engine::llama_cpp : fit::Engine::vllm;
  for (const fit::Engine engine : {fit::Engine::vllm, fit::Engine::sglang,
                                   fit::Engine::transformers, fit::Engine::llama_cpp}) {
    if (fit::engine_name(engine) != *asked) continue;
    const bool reads_gguf = engine == fit::Engine::llama_cpp;
    if (reads_gguf && !model.gguf)
      return fail(Code::usage,
                  "`--engine llama.cpp` reads GGUF files: name one (llama.cpp's "
                  "convert_hf_to_gguf.py makes it)");
    if (!reads_gguf && model.gguf)
      return fail(Code::usage, "a GGUF file is served by llama.cpp: leave `--engine` out");
    return engine;
  }
  return fail(Code::usage, format("`--engine {}`: no such engine", *asked));
}

Result<fit::ServeQuestion> serve_question(const FitServeRequest& request, const ServedFiles& model,
                                          std::vector<fit::Card> cards) {
  fit::ServeQuestion out;
  CUFIT_TRY(engine, engine_of(request.engine, model));
  CUFIT_TRY(tp, whole_number("tp", request.tp, k_serve_most_gpus));
  CUFIT_TRY(length, whole_number("context", request.context, uint64_t{1} << 30));
  CUFIT_TRY(sequences, whole_number("concurrency", request.concurrency, k_serve_most_sequences));
  out.engine = engine;
  out.tp = tp.value_or(1);
  out.context = length;
  out.sequences = sequences;
  out.cards = std::move(cards);
  if (engine == fit::Engine::transformers && out.tp > 1)
    return fail(Code::usage, "`--tp` goes with vllm, sglang and llama.cpp");
  // What the checkpoint brings scales for is kept so, and the flags say it.
  const bool eight = model.config.kv_dtype == "fp8" && engine != fit::Engine::transformers;
  const std::string name = request.kv_cache_dtype.value_or(eight ? "fp8_e4m3" : "auto");
  const std::optional<fit::CacheType> type = fit::cache_type(engine, name);
  if (!type)
    return fail(Code::usage, format("`--kv-cache-dtype {}`: not a type that {} takes", name,
                                    fit::engine_name(engine)));
  out.type = *type;
  return out;
}

Result<fit::ServeAnswer> answer_serving(const Context& context, const FitServeRequest& request,
                                        const std::vector<std::string>& gpus) {
  CUFIT_TRY(cards, asked_cards(gpus, context.knowledge));
  CUFIT_TRY(files, read_served_files(context.files, *request.serve));
  CUFIT_TRY(question, serve_question(request, files, std::move(cards)));
  CUFIT_TRY(model, fit::served_model(std::move(files.config), files.config_name));
  CUFIT_TRY(weights, fit::served_weights(model, files.tensors, question.engine, question.tp,
                                         files.config_name));
  CUFIT_TRY(answer, fit::serve_answer(model, std::move(weights), question, context.knowledge,
                                      files.config_name));
  answer.served = std::move(files.served);
  if (files.missing_bytes != 0)
    answer.warnings.emplace_back("cut_off", format_bytes(files.missing_bytes));
  return answer;
}

}  // namespace

Result<void> without_serving(const FitServeRequest& request) {
  for (const auto& [option, given] :
       {std::pair("tp", request.tp.has_value()), std::pair("context", request.context.has_value()),
        std::pair("concurrency", request.concurrency.has_value()),
        std::pair("engine", request.engine.has_value()),
        std::pair("kv-cache-dtype", request.kv_cache_dtype.has_value())})
    if (given) return fail(Code::usage, format("`--{}` goes with `--serve`", option));
  return {};
}

int run_fit_serve(const Context& context, const FitServeRequest& request,
                  const std::vector<std::string>& gpus, bool json) {
  const Output& output = context.output;
  const Result<fit::ServeAnswer> answer = answer_serving(context, request, gpus);
  if (!answer) return output.exit_code_for(answer.error());
  const report::FitServeView view{*request.serve, *answer, context.knowledge};
  return output.print(
      json ? report::fit_serve_json(view) : report::fit_serve_text(view, output.style()),
      answer->fits() ? k_ok : k_findings);
}

}  // namespace cufit::commands
