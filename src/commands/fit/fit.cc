// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit.h"
#include "commands/result_file.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/fit/fit_cached.h"
#include "commands/fit/fit_gpus.h"
#include "commands/fit/fit_links.h"
#include "fit/answer/ranked_answer.h"
#include "fit/answer/traced_answer.h"

namespace cufit::commands {
namespace {

template <auto Member>
constexpr Option fit_option(std::string_view flags, std::string_view value = {},
                            std::string_view choices = {}) {
  return inherited_option<FitRequest, Member>(flags, value, choices);
}

constexpr Option k_fit_options[] = {
    fit_option<&FitRequest::command>("COMMAND"),
    fit_option<&FitRequest::gpus>("--gpu", "NAME|GIB|all"),
    fit_option<&FitRequest::batch>("--batch", "N|auto"),
    fit_option<&FitRequest::batch_arg>("--batch-arg", "TEXT"),
    fit_option<&FitRequest::seq>("--seq", "N"),
    fit_option<&FitRequest::seq_arg>("--seq-arg", "TEXT"),
    fit_option<&FitRequest::function>("--function", "MODULE:NAME"),
    fit_option<&FitRequest::steps>("--steps", "N"),
    fit_option<&FitRequest::timeout>("--timeout", "SECONDS"),
    fit_option<&FitRequest::train>("--train", "HOW"),
    fit_option<&FitRequest::res>("--res", "PIXELS"),
    fit_option<&FitRequest::dtype>("--dtype", "TYPE", "bf16 fp16 fp32"),
    fit_option<&FitRequest::optimizer>("--optimizer", "NAME", "adamw adamw8bit sgd"),
    fit_option<&FitRequest::checkpointing>("--checkpointing", "on|off", "on off"),
    fit_option<&FitRequest::lora_targets>("--lora-targets", "NAMES"),
    fit_option<&FitRequest::ranks_of_model>("--gpus", "N,...|auto"),
    fit_option<&FitRequest::strategy>("--strategy", "HOW"),
    fit_option<&FitRequest::world>("--world", "N,...|auto"),
    fit_option<&FitRequest::ranks>("--ranks", "all", "all"),
    fit_option<&FitRequest::serve>("--serve", "MODEL"),
    fit_option<&FitRequest::tp>("--tp", "N"),
    fit_option<&FitRequest::context>("--context", "TOKENS"),
    fit_option<&FitRequest::concurrency>("--concurrency", "N"),
    fit_option<&FitRequest::engine>("--engine", "NAME", "vllm sglang transformers llama.cpp"),
    fit_option<&FitRequest::kv_cache_dtype>("--kv-cache-dtype", "TYPE"),
    fit_option<&FitRequest::plan>("--plan"),
    fit_option<&FitRequest::links>("--links", "FILE"),
    fit_option<&FitRequest::settings>("--set", "KEY=VALUE,...").or_empty(),
    fit_option<&FitRequest::events>("--events", "FILE"),
    fit_option<&FitRequest::from>("--from", "SNAPSHOT"),
    fit_option<&FitRequest::batch_was>("--batch-was", "N"),
    fit_option<&FitRequest::cached>("--cached"),
    fit_option<&FitRequest::keep>("--keep", "DIR"),
    fit_option<&FitRequest::html>("--html", "FILE"),
    fit_option<&FitRequest::json>("--json"),
};

constexpr uint64_t k_fit_most_batch = 1u << 20;

Result<std::optional<uint64_t>> asked_batch(const std::string& text) {
  if (text == "auto") return std::optional<uint64_t>();
  const std::optional<uint64_t> batch = parse_uint(text);
  if (!batch || *batch == 0 || *batch > k_fit_most_batch)
    return fail(Code::usage,
                format("`--batch {}`: a number from 1 to {}, or `auto`", text, k_fit_most_batch));
  return batch;
}

Result<fit::Question> question_of(const Context& context, const FitRequest& request) {
  const knowledge::Knowledge& knowledge = context.knowledge;
  fit::Question out;
  CUFIT_TRY(cards, asked_cards(request.gpus, knowledge));
  CUFIT_TRY(batch, asked_batch(request.batch));
  out.traced_card = fit::traced_card(cards, knowledge);
  out.cards = std::move(cards);
  out.batch = batch;
  out.settings = request.settings;
  out.plans = request.plan;
  if (request.plan && !request.from.empty())
    return fail(Code::usage, "`--plan` needs traces alone: `--from` does not go with it");
  if (!request.links) return out;
  if (!request.plan)
    return fail(Code::usage, "`--links` has what plans of several ranks send: it goes with `--plan`");
  CUFIT_TRY(links, measured_links(context.files, *request.links));
  out.links = std::move(links);
  return out;
}

bool names_program(const FitProgramRequest& request) {
  return !request.command.empty() || request.function || !request.events.empty();
}

// Error{usage} where a program, or how it is traced, stands beside a model that is served.
Result<void> serving_alone(const FitRequest& request) {
  const bool trained = request.train || request.res || request.dtype || request.optimizer ||
                       request.checkpointing || request.lora_targets || request.ranks_of_model ||
                       request.strategy;
  const bool traced = request.batch != "auto" || request.batch_arg || request.seq ||
                      request.seq_arg || request.steps || request.timeout || request.settings ||
                      request.plan || request.links || request.cached || request.keep;
  if (!names_program(request) && !trained && !traced && request.from.empty() &&
      request.batch_was.empty() && !request.html)
    return {};
  return fail(Code::usage,
              "`--serve` takes the model, and with it only `--gpu`, `--tp`, `--context`, "
              "`--concurrency`, `--engine`, `--kv-cache-dtype` and `--json`");
}

TracedGpu traced_gpu(const fit::Question& question, const knowledge::Knowledge& knowledge) {
  return {parse_compute_capability(question.traced_card.cc),
          fit::pretended_gpu(question.traced_card, knowledge),
          fit::cudnn_devices(question.traced_card, question.cards, knowledge),
          std::any_of(question.cards.begin(), question.cards.end(),
                      [](const fit::Card& card) { return !card.asked; })};
}

// `recording`: a real run of the program, which stands beside its traces.
Result<fit::Answer> answer_of(const Context& context, FitTraces traces,
                              const fit::Question& question,
                              const std::optional<RecordingAt>& recording) {
  std::optional<fit::MeasuredRun> beside;
  if (recording) {
    CUFIT_TRY(run, read_measured_run(context, *recording));
    beside = std::move(run);
  }
  return fit::ranked_answer(
      {std::move(traces.traces), std::move(traces.ranks), std::move(traces.worlds)}, question,
      context.knowledge, beside);
}

WorldsAsked worlds_asked(const Context& context, const fit::Question& question) {
  const auto asks = [&](auto which) -> NextBatch {
    return [&, which](fit::Traces traces) -> Result<std::optional<uint64_t>> {
      fit::keep_micro_batches_apart(traces, false);
      CUFIT_TRY(answer,
                fit::TracedAnswer::begin(std::move(traces), question, context.knowledge));
      return (answer.*which)();
    };
  };
  return {[&](fit::Traces traces) {
            return fit::world_answer(std::move(traces), question, context.knowledge);
          },
          question.cards, asks(&fit::TracedAnswer::batch_worth_tracing),
          asks(&fit::TracedAnswer::only_batch_of_plans)};
}

int print_failure(const Context& context, const fit::TraceFailure& failure, bool json) {
  if (json)
    (void)context.output.print(report::fit_failure_json(failure, context.knowledge), k_failed);
  report::Style style = context.output.style();
  style.colour = false;
  context.output.print_beside(report::fit_failure_text(failure, context.knowledge, style));
  return k_failed;
}

}  // namespace

std::span<const Option> fit_options() { return k_fit_options; }

int run_fit(const Context& context, const FitRequest& request) {
  const Output& output = context.output;
  if (const Result<void> alone = request.serve ? serving_alone(request) : without_serving(request);
      !alone)
    return output.exit_code_for(alone.error());
  if (request.serve) return run_fit_serve(context, request, request.gpus, request.json);
  const Result<fit::Question> question = question_of(context, request);
  if (!question) return output.exit_code_for(question.error());
  if (request.cached) return print_cached(context, request, question->cards);
  for (const std::string& recording : request.from)
    if (const Result<void> other = not_the_input(request.html, recording); !other)
      return output.exit_code_for(other.error());
  const bool with_recording = !request.from.empty() || !request.batch_was.empty();
  const bool calibrates = !request.from.empty() && names_program(request);
  if (with_recording && !calibrates) {
    const Result<fit::Answer> answer = answer_from_recordings(context, request, request, *question);
    if (!answer) return output.exit_code_for(answer.error());
    return print_fit_answer(context, recordings_as_typed(*answer->recorded), *answer, request);
  }
  std::optional<RecordingAt> recording;
  if (calibrates) {
    const Result<RecordingAt> one = recording_beside_program(request);
    if (!one) return output.exit_code_for(one.error());
    recording = *one;
  }
  const bool keeps = !calibrates && request.events.empty() && !request.command.empty();
  const FilesBefore before = keeps ? files_before(context.files, request.command) : FilesBefore();
  Result<FitTraces> traces =
      fit_traces(context, request, request, question->batch,
                 traced_gpu(*question, context.knowledge), worlds_asked(context, *question));
  if (!traces && traces.error().code == Code::cancelled) return k_interrupted;
  if (!traces) return output.exit_code_for(traces.error());
  if (traces->failure) return print_failure(context, *traces->failure, request.json);
  const FileMarks files = keeps ? files_of_trace(before, traces->traces) : FileMarks();
  const std::string program = traces->program;
  const Result<fit::Answer> answer =
      answer_of(context, std::move(*traces), *question, recording);
  if (!answer) return output.exit_code_for(answer.error());
  if (keeps) keep_answer(context, request, program, *answer, question->cards, files);
  return print_fit_answer(context, program, *answer, request);
}

}  // namespace cufit::commands
