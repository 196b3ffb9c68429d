// SPDX-License-Identifier: Apache-2.0
#include "report/preflight.h"

#include "base/format.h"
#include "report/resolve.h"
#include "report/error_translation.h"
#include "report/json/json_value.h"
#include "report/step_command.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

std::string why(const PreflightView& view, std::string_view lang) {
  if (!view.forbidden.empty()) return reason_text(view.forbidden.front(), lang, *view.knowledge);
  if (view.cause == nullptr) return translated_error(view.said, lang, *view.knowledge);
  std::string text = finding_text(*view.cause, "title", lang, *view.knowledge);
  if (!view.cause->unknown_because.empty())
    text += std::string(view.knowledge->message("report.colon", lang)) +
            translated_error(view.cause->unknown_because, lang, *view.knowledge);
  return text;
}

std::string next(const PreflightView& view, std::string_view lang) {
  if (!view.next.empty()) return view.next;
  return view.cause == nullptr ? "" : finding_text(*view.cause, "next", lang, *view.knowledge);
}

size_t further(const PreflightView& view) {
  return view.forbidden.empty() ? view.further_errors : view.forbidden.size() - 1;
}

}  // namespace

std::string preflight_text(const PreflightView& view, std::string_view lang) {
  if (view.answer == PreflightView::Answer::good)
    return message(*view.knowledge, view.machine_only ? "preflight.good_machine" : "preflight.good",
                   lang, {{"torch", printable(view.torch)}, {"machine", printable(view.machine)}}) +
           "\n";
  std::string out = message(
      *view.knowledge,
      view.answer == PreflightView::Answer::unknown ? "preflight.unknown" : "preflight.not_ready",
      lang, {{"why", printable(why(view, lang))}});
  if (const size_t more = further(view))
    out +=
        message(*view.knowledge, view.forbidden.empty() ? "preflight.more" : "preflight.more_rules",
                lang, {{"count", std::to_string(more)}});
  out += "\n";
  const std::string step = printable(next(view, lang));
  if (!step.empty())
    out += message(*view.knowledge, "preflight.next", lang, {{"next", step}}) + "\n";
  return out;
}

std::string preflight_json(const PreflightView& view) {
  Json out;
  out["schema"] = "cufit.preflight/1";
  out["cufit"] = CUFIT_VERSION;
  out["answer"] = view.answer == PreflightView::Answer::good      ? "good"
                  : view.answer == PreflightView::Answer::unknown ? "unknown"
                                                                  : "not_ready";
  if (!view.env.empty()) out["env"] = view.env;
  if (!view.class_name.empty()) out["class"] = view.class_name;
  if (!view.torch.empty()) out["torch"] = view.torch;
  out["machine"] = view.machine;
  if (view.answer != PreflightView::Answer::good) {
    Json cause;
    cause["id"] = !view.forbidden.empty() ? "policy"
                  : view.cause != nullptr ? view.cause->id
                                          : view.said_id;
    cause["why"] = why(view, "en");
    cause["next"] = next(view, "en");
    cause["command"] = step_command_json(next(view, "en"), next(view, "zh"));
    out["cause"] = std::move(cause);
    out["further"] = further(view);
  }
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
