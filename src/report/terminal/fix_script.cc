// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "report/fix.h"
#include "report/message.h"
#include "report/step_command.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

// One line, so that nothing of it can become a command.
std::string comment(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';  // printable() leaves it
  return "# " + printable(text) + "\n";
}

const char* verdict_key(checks::LinkState state) {
  return state == checks::LinkState::ok        ? "answer.works"
         : state == checks::LinkState::limited ? "answer.limited"
         : state == checks::LinkState::broken  ? "answer.broken"
                                               : "answer.unknown";
}

std::string step_text(const FixView& view, const checks::FixStep& step, size_t number,
                      const Labels& say, std::string_view lang) {
  const auto text = [&](const char* part, std::string_view language) {
    return finding_text(step.finding, part, language, view.knowledge);
  };
  const std::string next = text("next", lang);
  const std::string subject = subject_text(step.finding.subject, lang, view.knowledge);
  std::string out = comment(say(
      subject.empty() ? "fix.step_of_all" : "fix.step",
      {{"number", std::to_string(number)}, {"title", text("title", lang)}, {"subject", subject}}));
  std::optional<std::string> command = step_command(text("next", "en"), text("next", "zh"));
  if (command && changes_its_shell(*command)) command.reset();  // for the reader's own shell
  // A command that does not show what its step is about has the whole step above it.
  if (!command || contains(text("next", "en"), "`"))
    if (!next.empty()) out += comment(say(command ? "fix.whole" : "fix.by_hand", {{"step", next}}));
  if (command) out += *command + "\n";
  return out + "\n";
}

}  // namespace

std::string fix_script(const FixView& view, const Style& style) {
  const Labels say(view.knowledge, style.lang);
  std::string out = "#!/bin/sh\n" + comment(say("fix.head", {{"version", CUFIT_VERSION}}));
  const bool error =
      view.plan.before == checks::LinkState::limited &&
      std::any_of(view.plan.steps.begin(), view.plan.steps.end(), [](const checks::FixStep& one) {
        return one.finding.severity == checks::Severity::error;
      });
  const std::string before = say(error ? "answer.limited_error" : verdict_key(view.plan.before));
  if (view.plan.left_alone > 0)
    out += comment(say("fix.left_alone", {{"count", std::to_string(view.plan.left_alone)}}));
  if (view.plan.notes > 0)
    out += comment(say("fix.notes", {{"count", std::to_string(view.plan.notes)}}));
  const bool runs =
      view.plan.before == checks::LinkState::ok || view.plan.before == checks::LinkState::limited;
  if (view.plan.steps.empty())
    return out + comment(say(runs ? "fix.nothing" : "fix.no_step", {{"verdict", before}}));
  out += "set -e\n\n";
  size_t number = 0;
  for (const checks::FixStep& step : view.plan.steps)
    out += step_text(view, step, ++number, say, style.lang);
  const std::string after = say(verdict_key(view.plan.after));
  out += comment(view.plan.certain ? say("fix.after", {{"before", before}, {"after", after}})
                                   : say("fix.after_unknown", {{"before", before}}));
  return out;
}

}  // namespace cufit::report
