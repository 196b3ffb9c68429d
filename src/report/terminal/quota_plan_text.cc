// SPDX-License-Identifier: Apache-2.0
// What could hold a limit of GPU memory, best first, on a terminal.
#include "base/format.h"
#include "report/quota.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {

std::string quota_reason(const resolve::BackendVerdict& verdict, std::string_view kind,
                         std::string_view id, std::string_view lang,
                         const knowledge::Knowledge& knowledge) {
  if (id.empty()) return {};
  return message(knowledge, format("quota.{}.{}_{}", kind, resolve::to_string(verdict.backend), id),
                 lang, verdict.args);
}

namespace {

using State = resolve::BackendVerdict::State;

class QuotaPlanPainter : private TerminalWriter {
 public:
  QuotaPlanPainter(const QuotaPlanView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    const resolve::BackendVerdict* chosen = resolve::chosen_backend(view_.verdicts);
    flow(chosen ? say("quota.plan_holds", {{"backend", backend_name(*chosen)}})
                : say("quota.plan_none"),
         "", "  ", chosen ? "1;32" : "1;31");
    if (view_.recorded) flow(say("quota.plan_recorded"), "  ", "  ");
    out_ += "\n";
    int number = 0;
    for (const resolve::BackendVerdict& verdict : view_.verdicts)
      one(verdict, ++number, &verdict == chosen);
    out_ += "\n";
    flow(say("quota.plan_order"), "", "  ");
    if (chosen)
      next({{true, say(view_.gpus_seen ? "quota.start_step" : "quota.start_step_no_gpu")}});
    else
      next({{true, "cufit doctor"}});
    return finish();
  }

 private:
  std::string backend_name(const resolve::BackendVerdict& verdict) const {
    return message(knowledge_, format("quota.backend.{}", resolve::to_string(verdict.backend)),
                   style_.lang);
  }

  void one(const resolve::BackendVerdict& verdict, int number, bool chosen) {
    const char* key = chosen                             ? "quota.plan_chosen"
                      : verdict.state == State::starts   ? "quota.plan_too"
                      : verdict.state == State::possible ? "quota.plan_possible"
                                                         : "quota.plan_not";
    const char* colour = verdict.state == State::starts     ? "32"
                         : verdict.state == State::possible ? "33"
                                                            : "2";
    flow(format("{}. {}", number, backend_name(verdict)) + say("colon") + say(key), "", "   ",
         colour);
    const std::string why = quota_reason(verdict, "why", verdict.why, style_.lang, knowledge_);
    const std::string enable =
        quota_reason(verdict, "enable", verdict.to_enable, style_.lang, knowledge_);
    if (!why.empty()) flow(printable(why), "   ", "   ");
    if (!enable.empty())
      flow(say("quota.plan_enable", {{"what", printable(enable)}}), "   ", "   ");
  }

  const QuotaPlanView& view_;
};

}  // namespace

std::string quota_plan_text(const QuotaPlanView& view, const Style& style) {
  return QuotaPlanPainter(view, style).paint();
}

}  // namespace cufit::report
