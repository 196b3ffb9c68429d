// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit.h"

#include <algorithm>
#include <thread>

#include "base/format.h"
#include "base/number.h"
#include "base/parallel.h"
#include "commands/fit/fit_calibration.h"
#include "commands/fit/fit_from.h"
#include "commands/fit/fit_gpus.h"
#include "commands/fit/fit_page.h"
#include "commands/fit/fit_plans.h"
#include "commands/fit/fit_traces.h"
#include "commands/settings.h"
#include "memory/replay/what_if.h"

namespace cufit::commands {
namespace {

using report::FitGpu;
using report::FitWarning;

constexpr Option k_fit_options[] = {
    {"COMMAND", "", "", true, ""},
    {"--gpu", "NAME|GIB|all", "", true, ""},
    {"--batch", "N|auto", "", false, ""},
    {"--batch-arg", "TEXT", "", false, ""},
    {"--seq", "N", "", false, ""},
    {"--seq-arg", "TEXT", "", false, ""},
    {"--function", "MODULE:NAME", "", false, ""},
    {"--steps", "N", "", false, ""},
    {"--timeout", "SECONDS", "", false, ""},
    {"--train", "HOW", "", false, ""},
    {"--res", "PIXELS", "", false, ""},
    {"--dtype", "TYPE", "", false, "bf16 fp16 fp32"},
    {"--optimizer", "NAME", "", false, "adamw adamw8bit sgd"},
    {"--checkpointing", "on|off", "", false, "on off"},
    {"--lora-targets", "NAMES", "", false, ""},
    {"--plan", "", "", false, ""},
    {"--set", "KEY=VALUE,...", "", false, ""},
    {"--events", "FILE", "", true, ""},
    {"--from", "SNAPSHOT", "", true, ""},
    {"--batch-was", "N", "", true, ""},
    {"--keep", "DIR", "", false, ""},
    {"--html", "FILE", "", false, ""},
    {"--json", "", "", false, ""},
};

constexpr uint64_t k_fit_most_batch = 1u << 20;
constexpr size_t k_curve_points = 8;
constexpr ComputeCapability k_flash_attention{8, 0};

// The traces as programs. Those of several batch sizes answer for any; where the trace of a batch
// of one goes its own way, it answers for itself.
struct Programs {
  fit::StepProgram many;
  std::optional<fit::StepProgram> one;
  std::optional<uint64_t> own;  // the program's own batch size
  bool batch_known = true;

  const fit::StepProgram& at(uint64_t batch) const {
    return one && one->is_traced(batch) ? *one : many;
  }
};

std::string fact(const formats::TraceEvents& events, const char* key) {
  return std::string(events.fact(key));
}

FitWarning difference_of(const fit::StepProgram& program) {
  const fit::Difference& first = program.differences.front();
  return {"differs",
          {{"batch", std::to_string(first.batch)},
           {"other", std::to_string(first.other_batch)},
           {"op", first.op.empty() ? first.other_op : first.op}},
          first.source.empty() ? first.other_source : first.source};
}

bool all_constant(const fit::StepProgram& program) {
  return std::all_of(program.sizes.begin(), program.sizes.end(),
                     [](const fit::Size& size) { return size.rule == fit::SizeRule::constant; });
}

Result<Programs> programs_of(FitTraces& traces, std::vector<FitWarning>& warnings) {
  Programs out;
  out.own = traces.found;
  std::vector<formats::TraceEvents>& list = traces.traces;
  if (list.size() == 1 && list[0].fact("batch").empty()) {
    // A name for what it is: the one batch size that can be answered for.
    out.batch_known = false;
    const auto number = static_cast<uint32_t>(list[0].texts.size());
    list[0].texts.insert(list[0].texts.end(), {"batch", "1"});
    list[0].facts.push_back({number, number + 1});
  }
  CUFIT_TRY(all, fit::align(list));
  out.many = std::move(all);
  const auto one = std::find_if(list.begin(), list.end(), [](const formats::TraceEvents& events) {
    return events.fact("batch") == "1";
  });
  if (!out.many.differences.empty() && list.size() > 2 && one != list.end()) {
    std::vector<formats::TraceEvents> single;
    single.push_back(std::move(*one));
    list.erase(one);
    CUFIT_TRY(rest, fit::align(list));
    CUFIT_TRY(alone, fit::align(single));
    if (rest.differences.empty()) {
      warnings.push_back(difference_of(out.many));
      warnings.back().id = "differs_at_one";
      out.many = std::move(rest);
      out.one = std::move(alone);
    }
  }
  if (!out.many.differences.empty()) warnings.push_back(difference_of(out.many));
  if (out.many.later_steps != 0)
    warnings.push_back({"later_batches", {{"detail", std::to_string(out.many.later_steps)}}, {}});
  if (out.many.extrapolates() && all_constant(out.many)) {
    // What was changed was not the batch size of what is trained.
    warnings.push_back({"batch_without_effect", {}, std::string(out.many.fact("batch_from"))});
    list.resize(1);
    CUFIT_TRY(first, fit::align(list));
    out.many = std::move(first);
  }
  return out;
}

struct Question {
  uint64_t batch = 0;
  fit::Setup setup;  // without a bound
  std::string settings;
  Calibration calibration;
};

Result<fit::Setup> setup_of(const formats::TraceEvents& events, const std::string& settings) {
  fit::Setup setup;
  const std::string torch = fact(events, "torch");
  const std::optional<Version> version = parse_version(torch);
  if (!version)
    return fail(Code::malformed, format("{}: it does not say which torch was traced", events.name));
  setup.version = memory::version_profile(version->part(0), version->part(1));
  setup.libraries.torch_major = version->part(0);
  setup.libraries.torch_minor = version->part(1);
  setup.libraries.cublas_workspace_config = fact(events, "cublas_workspace_config");
  setup.libraries.cudnn_benchmark = fact(events, "cudnn_benchmark") == "1";
  CUFIT_TRY(parsed, memory::parse_allocator_settings(settings, setup.version));
  setup.settings = parsed;
  return setup;
}

void answer(FitGpu& card, const Programs& programs, const Question& question) {
  fit::Setup setup = on_card(question.setup, card);
  if (card.usable == 0) return;
  setup.capacity = question.calibration.capacity(card.usable);
  if (Result<fit::Prediction> got =
          fit::predict(programs.at(question.batch), question.batch, setup)) {
    card.fits = got->fits();
    question.calibration.apply(*got);
    card.prediction = std::move(*got);
  }
  card.largest = fit::largest_batch(programs.many, setup);
  if (card.largest.batch == 0) return;
  if (Result<fit::Prediction> got = fit::predict(programs.many, card.largest.batch, setup))
    card.largest_retries = got->alloc_retries;
}

// Cards that differ in name only are asked once: of `--gpu all` that is every second one.
void answer_cards(std::vector<FitGpu>& gpus, const Programs& programs, const Question& question) {
  answer_once(
      gpus, [](const FitGpu& a, const FitGpu& b) { return a.cc == b.cc && a.total == b.total; },
      [&](FitGpu& card) { answer(card, programs, question); });
}

Result<void> calibrate(const Arguments& arguments, const Programs& programs, const FitGpu& card,
                       Question& question, std::vector<FitWarning>& warnings) {
  if (!calibrates(arguments)) return {};
  CUFIT_TRY(batch, calibrated_batch(arguments));
  CUFIT_TRY(found,
            calibration(arguments, programs.at(batch), on_card(question.setup, card), warnings));
  question.calibration = found.value_or(Calibration());
  return {};
}

Result<std::optional<uint64_t>> asked_batch(const Arguments& arguments) {
  const std::string text = arguments.get("batch", "auto");
  if (text == "auto") return std::optional<uint64_t>();
  const std::optional<uint64_t> batch = parse_uint(text);
  if (!batch || *batch == 0 || *batch > k_fit_most_batch)
    return fail(Code::usage,
                format("`--batch {}`: a number from 1 to {}, or `auto`", text, k_fit_most_batch));
  return batch;
}

// Attention takes other kernels on cards without flash attention, and keeps other tensors.
void warn_of_other_kernels(const std::vector<FitGpu>& gpus, const FitGpu& card,
                           std::vector<FitWarning>& warnings) {
  const auto flash = [](const FitGpu& gpu) {
    const std::optional<ComputeCapability> cc = parse_compute_capability(gpu.cc);
    return !cc || *cc >= k_flash_attention;
  };
  for (const FitGpu& gpu : gpus) {
    if (flash(gpu) == flash(card)) continue;
    warnings.push_back({"other_kernels", {{"card", card.name}, {"other", gpu.name}}, ""});
    return;
  }
}

// Around what was asked, and to where the first card that was asked for is full. Where that is so
// only after cached memory was given back, its bar would run over the card.
std::vector<uint64_t> batches_of_curve(const fit::StepProgram& program, uint64_t wanted,
                                       const std::vector<FitGpu>& gpus) {
  std::vector<uint64_t> batches = fit::curve_batches(program, wanted, k_curve_points);
  const auto asked =
      std::find_if(gpus.begin(), gpus.end(), [](const FitGpu& gpu) { return gpu.asked; });
  if (asked == gpus.end() || asked->largest.batch == 0) return batches;
  const uint64_t largest = asked->largest.batch;
  const uint64_t most = 2 * std::max({wanted, largest, program.batches.front()});
  if (asked->largest_retries == 0) batches.push_back(largest);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  batches.erase(std::upper_bound(batches.begin(), batches.end(), most), batches.end());
  return batches;
}

// Nothing was asked that the traces do not answer, and every card that was asked for by name fits.
int exit_code(const std::vector<FitGpu>& gpus) {
  const bool fits = std::all_of(gpus.begin(), gpus.end(),
                                [](const FitGpu& gpu) { return !gpu.asked || gpu.fits; });
  return fits ? k_ok : k_findings;
}

int tell_failure(const report::FitFailure& failure, const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  if (arguments.has("json")) (void)print(report::fit_failure_json(failure, knowledge), k_failed);
  report::Style style = style_for(arguments);
  style.colour = false;
  std::fputs(report::fit_failure_text(failure, knowledge, style).c_str(), stderr);
  return k_failed;
}

int answer_all(const Arguments& arguments, std::vector<FitGpu> gpus, const FitGpu& card,
               std::optional<uint64_t> asked, FitTraces& traces) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Question question;
  question.settings = memory::settings_from_option(
      arguments.has("set") ? arguments.get("set") : fact(traces.traces[0], "alloc_conf"));
  Result<fit::Setup> setup = setup_of(traces.traces[0], question.settings);
  if (!setup) return exit_code_for(setup.error());
  question.setup = std::move(*setup);
  const Result<Programs> programs = programs_of(traces, traces.warnings);
  if (!programs) return exit_code_for(programs.error());
  const uint64_t own = programs->own.value_or(programs->many.batches.front());
  question.batch = asked.value_or(own);
  const fit::StepProgram& program = programs->at(question.batch);
  bool unanswered = false;
  if (program.at(question.batch) == nullptr) {
    unanswered = asked.has_value();
    question.batch = program.differences.empty() ? program.batches.front()
                                                 : program.apart.front().batches.front();
  }
  Result<fit::Prediction> prediction =
      fit::predict(programs->at(question.batch), question.batch, on_card(question.setup, card));
  if (!prediction) return exit_code_for(prediction.error());
  if (const Result<void> done = calibrate(arguments, *programs, card, question, traces.warnings);
      !done)
    return exit_code_for(done.error());
  question.calibration.apply(*prediction);
  warn_of_other_kernels(gpus, card, traces.warnings);
  for (const std::string& id : prediction->warnings)
    if (programs->batch_known || id != "batch_one") traces.warnings.push_back({id, {}, ""});
  if (prediction->growth_per_step != 0)
    traces.warnings.push_back(
        {"grows", {{"bytes", format_bytes(prediction->growth_per_step)}}, ""});
  answer_cards(gpus, *programs, question);
  std::vector<fit::CurvePoint> curve;
  if (programs->many.extrapolates())
    curve = fit::curve(programs->many, batches_of_curve(programs->many, question.batch, gpus),
                       on_card(question.setup, card));
  for (fit::CurvePoint& point : curve) question.calibration.apply(point);
  std::optional<report::FitPlans> plans;
  if (arguments.has("plan"))
    plans = fit_plans(
        traces,
        {programs->batch_known ? question.batch : 0, programs->many.extrapolates(), question.setup},
        card, gpus);
  const report::FitView view{traces.program,
                             programs->many,
                             programs->batch_known ? question.batch : 0,
                             programs->own,
                             *prediction,
                             card,
                             question.settings,
                             gpus,
                             curve,
                             traces.warnings,
                             knowledge,
                             nullptr,
                             plans ? &*plans : nullptr};
  const Result<void> page =
      write_fit_page(arguments, view, programs->at(question.batch), on_card(question.setup, card));
  if (!page) return exit_code_for(page.error());
  const std::string text =
      arguments.has("json") ? report::fit_json(view) : report::fit_text(view, style_for(arguments));
  const int code = print(text, exit_code(gpus));
  if (!unanswered) return code;
  print_error(report::format_message(knowledge.message("fit.unanswered", language(arguments)),
                                     {{"batch", std::to_string(*asked)}}));
  return k_failed;
}

}  // namespace

std::span<const Option> fit_options() { return k_fit_options; }

int run_fit(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Result<std::vector<FitGpu>> gpus = fit_gpus(arguments, knowledge);
  if (!gpus) return exit_code_for(gpus.error());
  const Result<std::optional<uint64_t>> asked = asked_batch(arguments);
  if (!asked) return exit_code_for(asked.error());
  const FitGpu card = traced_card(*gpus, knowledge);
  if (arguments.has("plan") && arguments.has("from"))
    return exit_code_for(
        fail(Code::usage, "`--plan` needs traces alone: `--from` does not go with it"));
  if (from_recordings(arguments)) return run_fit_from(arguments, std::move(*gpus), card, *asked);
  if (calibrates(arguments))
    if (const Result<uint64_t> batch = calibrated_batch(arguments); !batch)
      return exit_code_for(batch.error());
  Result<FitTraces> traces =
      fit_traces(arguments, {pretended(card, knowledge), cudnn_devices(card, *gpus, knowledge)});
  if (!traces && traces.error().code == Code::cancelled) return k_interrupted;
  if (!traces) return exit_code_for(traces.error());
  if (traces->failure) return tell_failure(*traces->failure, arguments);
  return answer_all(arguments, std::move(*gpus), card, *asked, *traces);
}

}  // namespace cufit::commands
