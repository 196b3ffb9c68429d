// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "report/death.h"
#include "report/width.h"

namespace cufit::report {
namespace {

using explain::Confidence;
using explain::ProgramError;

std::string message(const DeathView& view, std::string_view key, std::string_view lang,
                    const std::map<std::string, std::string>& args = {}) {
  return fill(view.knowledge.message("death.reason." + std::string(key), lang), args);
}

bool pointed_to(const DeathView& view) {
  const auto& causes = view.explanation.causes;
  return !causes.empty() && causes[0].confidence != Confidence::possible;
}

std::string last_line(const DeathView& view) {
  const std::string tail = plain_tail(view.run.tail);
  const std::string_view text = trim(tail);
  const size_t before = text.rfind('\n');
  std::string line(before == text.npos ? text : text.substr(before + 1));
  constexpr size_t k_most = 200;
  if (line.size() > k_most)
    line = line.substr(0, line.find_last_not_of("\x80\xff", k_most)) + "...";
  return line;
}

std::string by_error(const DeathView& view, std::string_view lang) {
  const ProgramError& error = *view.explanation.program_error;
  const std::map<std::string, std::string> args = {{"line", printable(error.line)},
                                                   {"module", printable(error.module)},
                                                   {"class", view.class_name}};
  switch (error.kind) {
    case ProgramError::Kind::module:
      return message(view, view.remake.empty() ? "no_module" : "not_as_locked", lang, args);
    case ProgramError::Kind::exception:
      return message(view, "program", lang, args);
    case ProgramError::Kind::usage:
      return message(view, "usage", lang, args);
    case ProgramError::Kind::other_exception:
      break;
  }
  return message(view, "unknown_line", lang, args);
}

std::string by_signal(const DeathView& view, std::string_view lang) {
  const knowledge::ExitCodeRow* row = view.knowledge.find_exit_code(view.run.exit_code);
  const std::string name = row == nullptr ? "" : std::string(row->signal);
  for (const char* known : {"SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"})
    if (name == known) return message(view, known, lang);
  return message(view, "unknown", lang);
}

}  // namespace

bool shows_causes(const DeathView& view) {
  return !view.explanation.causes.empty() && view.remake.empty();
}

std::string death_reason(const DeathView& view, std::string_view lang) {
  if (!view.remake.empty())
    return by_error(view, lang) + "\n" +
           fill(view.knowledge.message("run.next", lang), {{"command", view.remake}});
  if (pointed_to(view)) return {};
  if (view.run.exit_code == 137) return message(view, "SIGKILL", lang);
  if (view.run.signal != 0) return by_signal(view, lang);
  if (view.explanation.program_error) return by_error(view, lang);
  if (shows_causes(view)) return {};
  const std::string line = printable(last_line(view));
  return line.empty() ? message(view, "unknown", lang)
                      : message(view, "unknown_line", lang, {{"line", line}});
}

}  // namespace cufit::report
