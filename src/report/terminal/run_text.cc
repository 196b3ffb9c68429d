// SPDX-License-Identifier: Apache-2.0
#include "report/run.h"

#include "base/format.h"
#include "report/resolve.h"
#include "report/error_translation.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using resolve::LiveTarget;

std::map<std::string, std::string> worded(std::map<std::string, std::string> args,
                                          const RunView& view, std::string_view lang) {
  if (const auto note = args.find("note"); note != args.end())
    note->second = translated_error(note->second, lang, view.knowledge);
  return args;
}

std::string why_text(const resolve::Reason& reason, const RunView& view, std::string_view lang) {
  return reason_text(reason, lang, view.knowledge);
}

// Why a class that stands before the chosen one was passed over; empty where none does.
std::string passed_over(const RunView& view, std::string_view lang) {
  if (view.asked_for || view.live.sight != LiveTarget::Sight::gpus) return {};
  for (size_t i = 0; i < view.index && i < view.routing.verdicts.size(); ++i) {
    const resolve::Verdict& verdict = view.routing.verdicts[i];
    if (resolve::usable(verdict.fit) || verdict.reasons.empty()) continue;
    return message(view.knowledge, "run.passed_over", lang,
                   {{"class", view.lock.classes[i].name},
                    {"why", why_text(verdict.reasons.front(), view, lang)}});
  }
  return {};
}

// A condition of the chosen class (minor-version compatibility, PTX), or that it does not fit.
std::string condition(const RunView& view, std::string_view lang) {
  if (view.index >= view.routing.verdicts.size()) return {};
  const resolve::Verdict& verdict = view.routing.verdicts[view.index];
  if (verdict.fit == resolve::Fit::works || verdict.reasons.empty()) return {};
  const std::string why = why_text(verdict.reasons.front(), view, lang);
  return message(view.knowledge, resolve::usable(verdict.fit) ? "run.condition" : "run.asked_unfit",
                 lang, {{"why", why}});
}

std::string refused(const RunRefusal& refusal, const RunView& view, std::string_view lang) {
  std::map<std::string, std::string> args = refusal.args;
  args["sight"] = sight_text(view, lang);
  args["why"] = refusal.args.count("why")
                    ? translated_error(refusal.args.at("why"), lang, view.knowledge)
                    : "";
  if (refusal.id == "unclear")
    args["why"] = message(view.knowledge, "run.sight." + view.live.reason, lang,
                          worded(view.live.args, view, lang));
  if (refusal.id == "policy" && !refusal.reasons.empty())
    args["why"] = why_text(refusal.reasons.front().second, view, lang);
  return printable(message(view.knowledge, "run.refused." + refusal.id, lang, args));
}

}  // namespace

std::string sight_text(const RunView& view, std::string_view lang) {
  const LiveTarget& live = view.live;
  if (live.sight == LiveTarget::Sight::not_told)
    return message(view.knowledge, "run.sight.not_told", lang);
  if (live.sight != LiveTarget::Sight::gpus)
    return message(view.knowledge, "run.sight." + live.reason, lang, worded(live.args, view, lang));
  const std::string gpus = resolve::gpus_text(live.target);
  if (!live.target.driver) return gpus;
  return message(view.knowledge, "run.sight.gpus", lang,
                 {{"gpus", gpus}, {"driver", resolve::driver_text(*live.target.driver)}});
}

std::string run_line(const RunView& view, std::string_view lang) {
  const resolve::LockClass& chosen = view.lock.classes[view.index];
  std::string line = message(
      view.knowledge, view.asked_for ? "run.chosen_asked" : "run.chosen", lang,
      {{"class", chosen.name}, {"torch", chosen.wheel.torch}, {"sight", sight_text(view, lang)}});
  line += passed_over(view, lang) + condition(view, lang);
  if (!view.elsewhere.empty())
    line += message(view.knowledge, "run.elsewhere", lang, {{"folder", view.elsewhere}});
  return printable(line);
}

std::string refusal_line(const RunRefusal& refusal, const RunView& view, std::string_view lang) {
  return refused(refusal, view, lang);
}

std::string refusal_text(const RunRefusal& refusal, const RunView& view, std::string_view lang) {
  std::string out = "cufit: " + refusal_line(refusal, view, lang) + "\n";
  if (refusal.id == "no_fit" && refusal.reasons.empty())
    out += "  " + message(view.knowledge, "run.no_class", lang) + "\n";
  const size_t first = refusal.id == "policy" ? 1 : 0;  // that one stands in the line above
  for (size_t i = first; i < refusal.reasons.size(); ++i) {
    const auto& [name, reason] = refusal.reasons[i];
    out +=
        "  " + (name.empty() ? "" : name + ": ") + printable(why_text(reason, view, lang)) + "\n";
  }
  for (const RunGroup& group : refusal.groups) {
    out += "  ";
    out +=
        group.class_name.empty()
            ? message(view.knowledge, "run.group_without", lang, {{"gpus", printable(group.gpus)}})
            : message(view.knowledge, "run.group", lang,
                      {{"gpus", printable(group.gpus)}, {"class", group.class_name}});
    out += "\n";
    if (!group.variables.empty())
      out += "    " + printable(group.variables) + " cufit run -- ...\n";
  }
  if (!refusal.next.empty())
    out += message(view.knowledge, "run.next", lang, {{"command", printable(refusal.next)}}) + "\n";
  return out;
}

}  // namespace cufit::report
