// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "report/crash_report.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using explain::Confidence;
using explain::ProgramError;

bool pointed_to(const CrashReportView& view) {
  const auto& causes = view.explanation.causes;
  return !causes.empty() && causes[0].confidence != Confidence::possible;
}

std::string last_line(const CrashReportView& view) {
  const std::string tail = plain_tail(view.run.tail);
  const std::string_view text = trim(tail);
  const size_t before = text.rfind('\n');
  std::string line(before == text.npos ? text : text.substr(before + 1));
  constexpr size_t k_most = 200;
  if (line.size() > k_most)
    line = line.substr(0, line.find_last_not_of("\x80\xff", k_most)) + "...";
  return line;
}

// Nothing is known, or several causes fit and stand below. `what`: "", "_line" or "_signal".
std::string unknown(const CrashReportView& view, const std::string& what, std::string_view lang,
                    const std::map<std::string, std::string>& args = {}) {
  return message(view.knowledge,
                 (shows_causes(view) ? "death.reason.unsure" : "death.reason.unknown") + what, lang,
                 args);
}

std::string by_error(const CrashReportView& view, std::string_view lang) {
  const ProgramError& error = *view.explanation.program_error;
  const std::map<std::string, std::string> args = {{"line", printable(error.line)},
                                                   {"module", printable(error.module)},
                                                   {"class", view.class_name}};
  switch (error.kind) {
    case ProgramError::Kind::module:
      return message(view.knowledge,
                     view.remake.empty() ? "death.reason.no_module" : "death.reason.not_as_locked",
                     lang, args);
    case ProgramError::Kind::exception:
      return message(view.knowledge, "death.reason.program", lang, args);
    case ProgramError::Kind::usage:
      return message(view.knowledge, "death.reason.usage", lang, args);
    case ProgramError::Kind::other_exception:
      break;
  }
  return unknown(view, "_line", lang, args);
}

std::string by_signal(const CrashReportView& view, std::string_view lang) {
  const knowledge::ExitCodeRow* row = view.knowledge.find_exit_code(view.run.exit_code);
  const std::string name = row == nullptr ? "" : std::string(row->signal);
  for (const char* known : {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"})
    if (name == known)
      return unknown(
          view, "_signal", lang,
          {{"what", message(view.knowledge, std::string("death.reason.") + known, lang)}});
  return unknown(view, "", lang);
}

}  // namespace

bool shows_causes(const CrashReportView& view) {
  return !view.explanation.causes.empty() && view.remake.empty();
}

std::string crash_report_reason(const CrashReportView& view, std::string_view lang) {
  if (!view.remake.empty())
    return by_error(view, lang) + "\n" +
           message(view.knowledge, "run.next", lang, {{"command", view.remake}});
  if (pointed_to(view)) return {};
  if (view.run.exit_code == 137) return message(view.knowledge, "death.reason.SIGKILL", lang);
  if (view.run.signal != 0) return by_signal(view, lang);
  if (view.explanation.program_error) return by_error(view, lang);
  if (shows_causes(view)) return {};
  const std::string line = printable(last_line(view));
  return line.empty() ? unknown(view, "", lang) : unknown(view, "_line", lang, {{"line", line}});
}

}  // namespace cufit::report
