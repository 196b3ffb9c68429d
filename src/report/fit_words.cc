// SPDX-License-Identifier: Apache-2.0
// What `cufit fit` says in words alone: a warning's sentence, and why a program could not be
// traced.
#include "report/fit_words.h"

#include <algorithm>

#include "base/format.h"
#include "report/mem_words.h"
#include "report/screen.h"
#include "report/width.h"

namespace cufit::report {
namespace {

// Sentences of data/messages/fit.toml quote what programs say: it may hold anything.
std::map<std::string, std::string> printable_args(const std::map<std::string, std::string>& args) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : args) out[name] = printable(value);
  return out;
}

class FailurePainter : private Screen {
 public:
  FailurePainter(const FitFailure& failure, const knowledge::Knowledge& knowledge,
                 const Style& style)
      : Screen(knowledge, style), failure_(failure) {}

  std::string paint() {
    flow(say("fit.stop." + failure_.kind, arguments()), "cufit: ", "  ");
    if (!failure_.detail.empty()) {
      const std::string place = failure_.source.empty()
                                    ? std::string()
                                    : say("fit.at", {{"source", printable(failure_.source)}});
      flow(printable(failure_.detail) + place, "  ", "  ");
    }
    learned();
    for (const FitWarning& warning : failure_.warnings)
      labelled(say("fit.note") + say("colon"), fit_warning_text(warning, knowledge_, style_.lang));
    next(cut_commands(say("fit.next." + failure_.next, arguments())));
    return finish();
  }

 private:
  std::map<std::string, std::string> arguments() const {
    return {{"program", printable(failure_.program)},
            {"code", std::to_string(failure_.exit_code)},
            {"batch", failure_.batch ? std::to_string(*failure_.batch) : ""}};
  }

  void learned() {
    if (failure_.torch.empty()) return;
    std::string text = say("fit.learned.torch", {{"torch", printable(failure_.torch)}});
    if (failure_.found)
      text += say("semicolon") + say("fit.learned.batch", {{"batch", thousands(*failure_.found)}});
    if (failure_.storages != 0)
      text +=
          say("semicolon") + say("fit.learned.memory", {{"storages", thousands(failure_.storages)},
                                                        {"peak", gib(failure_.peak_allocated)},
                                                        {"steps", thousands(failure_.steps)}});
    labelled(say("fit.until_then") + say("colon"), text);
  }

  const FitFailure& failure_;
};

}  // namespace

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
  }
  return "other";
}

std::vector<std::pair<std::string, uint64_t>> parts_of(const fit::Prediction& prediction) {
  const fit::Breakdown& parts = prediction.breakdown;
  return {{"weights", parts.weights},
          {"gradients", parts.gradients},
          {"optimizer_state", parts.optimizer_state},
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

std::string fit_warning_text(const FitWarning& warning, const knowledge::Knowledge& knowledge,
                             const std::string& lang) {
  std::string text =
      label(knowledge, lang, "fit.warning." + warning.id, printable_args(warning.args));
  if (!warning.source.empty())
    text += label(knowledge, lang, "fit.at", {{"source", printable(warning.source)}});
  return text;
}

std::string fit_failure_text(const FitFailure& failure, const knowledge::Knowledge& knowledge,
                             const Style& style) {
  return FailurePainter(failure, knowledge, style).paint();
}

}  // namespace cufit::report
