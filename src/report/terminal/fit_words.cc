// SPDX-License-Identifier: Apache-2.0
// What `cufit fit` says in words alone: a warning's sentence, and why a program could not be
// traced.
#include "report/terminal/fit_words.h"

#include <algorithm>

#include "base/format.h"
#include "report/terminal/mem_words.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

// Sentences of data/messages/fit.toml quote what programs say: it may hold anything.
std::map<std::string, std::string> printable_args(const fit::Warning& warning,
                                                  const knowledge::Knowledge& knowledge,
                                                  const std::string& lang) {
  // In the others a detail is what the program said.
  const bool worded = warning.id == "assumed" || warning.id == "scratch" ||
                      warning.id == "several_processes" || warning.id == "data_dependent";
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : warning.args)
    out[name] = printable(worded ? reworded(value, "said.fit.", lang, knowledge) : value);
  for (const auto& [name, bytes] : warning.sizes) out[name] = gib(bytes);
  return out;
}

class FailurePainter : private TerminalWriter {
 public:
  FailurePainter(const fit::TraceFailure& failure, const knowledge::Knowledge& knowledge,
                 const Style& style)
      : TerminalWriter(knowledge, style), failure_(failure) {}

  std::string paint() {
    flow(say("fit.stop." + failure_.kind, arguments()), "cufit: ", "  ");
    if (failure_.kind == "timed_out") {
      flow(last_place(), "  ", "  ");
    } else if (!failure_.detail.empty()) {
      const std::string place = failure_.source.empty()
                                    ? std::string()
                                    : say("fit.at", {{"source", printable(failure_.source)}});
      flow(printable(reworded(failure_.detail, "said.fit.", style_.lang, knowledge_)) + place, "  ",
           "  ");
    }
    learned();
    for (const fit::Warning& warning : failure_.warnings)
      labelled(say("fit.note") + say("colon"), fit_warning_text(warning, knowledge_, style_.lang));
    next(cut_commands(say("fit.next." + failure_.next, arguments())));
    return finish();
  }

 private:
  std::map<std::string, std::string> arguments() const {
    return {{"program", printable(failure_.program)},
            {"limit", failure_.limit.empty() ? "" : say("fit.limit." + failure_.limit)},
            {"code", std::to_string(failure_.exit_code)},
            {"source", printable(failure_.source)},
            {"batch", failure_.batch ? std::to_string(*failure_.batch) : ""}};
  }

  // `detail` is here a function of a library, below the user's line.
  std::string last_place() const {
    if (failure_.source.empty()) return say("fit.last_place.unknown");
    return say(failure_.detail.empty() ? "fit.last_place.line" : "fit.last_place.inside",
               {{"source", printable(failure_.source)}, {"detail", printable(failure_.detail)}});
  }

  void learned() {
    if (failure_.torch.empty()) return;
    std::string text = say("fit.learned.torch", {{"torch", printable(failure_.torch)}});
    if (failure_.found)
      text += say("semicolon") + say("fit.learned.batch", {{"batch", thousands(*failure_.found)}});
    const auto count = [this](const char* key, uint64_t number) {
      return say(counted(key, number), {{"count", thousands(number)}});
    };
    if (failure_.storages != 0)
      text += say("semicolon") +
              say("fit.learned.memory",
                  {{"allocations", count("fit.learned.allocations", failure_.storages)},
                   {"peak", gib(failure_.peak_allocated)},
                   {"steps", count("fit.learned.steps", failure_.steps)}});
    labelled(say("fit.until_then") + say("colon"), text);
  }

  const fit::TraceFailure& failure_;
};

}  // namespace

std::string counted(const char* key, uint64_t count) {
  return count == 1 ? format("{}_one", key) : key;
}

const char* phase_name(fit::TracePhase phase) {
  switch (phase) {
    case fit::TracePhase::setup:
      return "setup";
    case fit::TracePhase::forward:
      return "forward";
    case fit::TracePhase::backward:
      return "backward";
    case fit::TracePhase::optimizer:
      return "optimizer";
    case fit::TracePhase::other:
      return "other";
    case fit::TracePhase::validation:
      return "validation";
  }
  return "other";
}

std::vector<std::pair<std::string, uint64_t>> parts_of(const fit::Prediction& prediction) {
  const fit::Breakdown& parts = prediction.breakdown;
  return {{"weights", parts.weights},
          {"gradients", parts.gradients},
          {"optimizer_state", parts.optimizer_state},
          {"gathered", parts.gathered},
          {"communication", parts.communication},
          {"activations", parts.activations},
          {"temporaries", parts.temporaries},
          {"workspaces", parts.workspaces},
          {"inputs", parts.inputs},
          {"buffers", parts.buffers},
          {"other", parts.other},
          {"fragmentation", parts.fragmentation},
          {"outside_allocator", prediction.outside_allocator}};
}

std::vector<uint64_t> traced_batches(const fit::StepProgram& program) {
  if (program.apart.empty()) return program.batches;
  std::vector<uint64_t> out;
  for (const fit::StepProgram& one : program.apart)
    out.insert(out.end(), one.batches.begin(), one.batches.end());
  std::sort(out.begin(), out.end());
  return out;
}

std::string fit_batch_text(const FitView& view, const std::string& lang) {
  if (view.answer.batch == 0) return label(view.knowledge, lang, "fit.batch.unknown");
  const std::map<std::string, std::string> args = {
      {"batch", thousands(view.answer.batch)},
      {"own", view.answer.programs.own_batch ? thousands(*view.answer.programs.own_batch) : ""}};
  if (!view.answer.programs.own_batch) return label(view.knowledge, lang, "fit.batch.asked", args);
  return label(
      view.knowledge, lang,
      *view.answer.programs.own_batch == view.answer.batch ? "fit.batch.own" : "fit.batch.other",
      args);
}

namespace {

std::string recorded_text(const FitView& view, const std::string& lang) {
  const fit::RecordedFigures& recorded = *view.answer.recorded;
  std::string out;
  for (const fit::Recording& one : recorded.recordings) {
    if (!out.empty()) out += label(view.knowledge, lang, "semicolon");
    out += label(view.knowledge, lang, counted("fit.recorded", one.steps),
                 {{"batch", thousands(one.batch)},
                  {"steps", thousands(one.steps)},
                  {"reserved", gib(one.peak_reserved)},
                  {"allocated", gib(one.peak_allocated)}});
  }
  return out + label(view.knowledge, lang, "semicolon") +
         label(
             view.knowledge, lang, "fit.recorded_proved",
             {{"proved", thousands(recorded.proved)}, {"storages", thousands(recorded.storages)}});
}

}  // namespace

std::string fit_traced_text(const FitView& view, const std::string& lang) {
  if (view.answer.recorded) return recorded_text(view, lang);
  std::string batches;
  for (const uint64_t batch : traced_batches(view.answer.traced()))
    batches += (batches.empty() ? "" : label(view.knowledge, lang, "list")) + thousands(batch);
  return label(
      view.knowledge, lang,
      counted(view.answer.batch == 0 ? "fit.traced_once" : "fit.traced",
              view.answer.traced().traced_steps()),
      {{"batches", batches},
       {"steps", std::to_string(view.answer.traced().traced_steps())},
       {"torch", printable(view.answer.traced().fact("torch"))},
       {"settings", view.answer.settings.empty() ? label(view.knowledge, lang, "mem.default")
                                                 : printable(view.answer.settings)}});
}

std::string fit_peak_text(const FitView& view, const std::string& lang) {
  return label(view.knowledge, lang, view.answer.recorded ? "fit.peak_recorded" : "fit.peak",
               {{"lowest", gib(view.answer.recorded ? view.answer.recorded->lowest_reserved : 0)},
                {"reserved", gib(view.answer.prediction.peak_reserved)},
                {"upper", gib(view.answer.prediction.peak_reserved_upper)},
                {"allocated", gib(view.answer.prediction.peak_allocated)}});
}

std::string fit_outside_text(const FitView& view, const std::string& lang) {
  // Of a group that is not of NCCL the trace has no such fact.
  const bool nccl = !view.answer.traced().fact("world").empty();
  return label(view.knowledge, lang, nccl ? "fit.outside_nccl" : "fit.outside",
               {{"outside", gib(view.answer.prediction.outside_allocator)},
                {"total", gib(view.answer.prediction.outside_allocator +
                              view.answer.prediction.peak_reserved_upper)},
                {"card", view.answer.card.name},
                {"cc", view.answer.card.cc}});
}

const char* when_of(const fit::Moment& peak) {
  if (peak.phase == fit::TracePhase::validation) return "fit.when_validation";
  return peak.step == 0 ? "fit.when_setup" : "fit.when";
}

std::string fit_when_text(const FitView& view, const std::string& lang) {
  const auto say = [&](const std::string& key, const std::map<std::string, std::string>& args) {
    return label(view.knowledge, lang, key, args);
  };
  const fit::Moment& peak = view.answer.prediction.peak;
  std::string out =
      say(when_of(peak), {{"step", thousands(peak.step)},
                          {"phase", say(format("fit.phase.{}", phase_name(peak.phase)), {})}});
  if (!peak.op.empty()) out += say("colon", {}) + format("`{}`", printable(peak.op));
  if (!peak.module.empty()) out += say("fit.in_module", {{"module", printable(peak.module)}});
  if (!peak.source.empty()) out += say("fit.at", {{"source", printable(peak.source)}});
  return out;
}

std::string fit_largest_text(const FitView& view, const fit::CardAnswer& gpu) {
  if (view.answer.batch == 0) return "-";
  if (gpu.largest.only_traced && gpu.largest.batch == 0) return "-";
  const std::string text = thousands(gpu.largest.batch);
  return gpu.largest.unbounded || gpu.largest.only_traced ? ">= " + text : text;
}

namespace {

// A desktop takes as much, and more.
constexpr uint64_t k_tight = uint64_t{256} << 20;

// What the largest batch's upper value leaves of the card; UINT64_MAX where nothing was probed there.
uint64_t left_by_largest(const FitView& view, const fit::CardAnswer& gpu) {
  if (view.answer.batch == 0 || gpu.largest.batch == 0 || gpu.largest.unbounded) return UINT64_MAX;
  for (const fit::CurvePoint& point : gpu.largest.probes)
    if (point.batch == gpu.largest.batch && point.peak_reserved_upper <= gpu.usable)
      return gpu.usable - point.peak_reserved_upper;
  return UINT64_MAX;
}

}  // namespace

std::string fit_gpu_note(const FitView& view, const fit::CardAnswer& gpu, const std::string& lang) {
  const auto say = [&](const char* key) { return label(view.knowledge, lang, key); };
  std::string out;
  if (!gpu.measured) out = say("fit.nominal");
  std::string more;
  // Where the upper value alone would run over, it may have to.
  const bool retries = gpu.prediction && gpu.prediction->alloc_retries != 0;
  if (gpu.fits && (retries || view.answer.prediction.peak_reserved_upper > gpu.usable))
    more = say("fit.retries");
  else if (view.answer.batch != 0 && gpu.largest_retries != 0)
    more = label(view.knowledge, lang,
                 gpu.largest_whole != 0 ? "fit.largest_retries_whole" : "fit.largest_retries",
                 {{"batch", thousands(gpu.largest_whole)}});
  else if (const uint64_t left = left_by_largest(view, gpu); left < k_tight)
    more = label(view.knowledge, lang, "fit.tight",
                 {{"batch", thousands(gpu.largest.batch)}, {"left", gib(left)}});
  return out.empty() || more.empty() ? out + more : out + "  " + more;
}

std::string fit_module_name(const FitView& view, const fit::ModuleBytes& row,
                            const std::string& lang) {
  return row.module.empty() ? label(view.knowledge, lang, "fit.no_module") : printable(row.module);
}

std::string fit_warning_text(const fit::Warning& warning, const knowledge::Knowledge& knowledge,
                             const std::string& lang) {
  std::string text =
      label(knowledge, lang, "fit.warning." + warning.id, printable_args(warning, knowledge, lang));
  if (!warning.source.empty())
    text += label(knowledge, lang, "fit.at", {{"source", printable(warning.source)}});
  return text;
}

std::string fit_failure_text(const fit::TraceFailure& failure,
                             const knowledge::Knowledge& knowledge, const Style& style) {
  return FailurePainter(failure, knowledge, style).paint();
}

}  // namespace cufit::report
