// SPDX-License-Identifier: Apache-2.0
#include "commands/output.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/format.h"
#include "commands/context.h"
#include "host/files/rlimit_fsize_guard.h"
#include "host/process/this_process.h"
#include "report/error_translation.h"
#include "report/message.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr int k_usual_width = 100;

std::string language_of(const host::Host& variables, std::optional<Language> asked) {
  if (asked) return *asked == Language::zh ? "zh" : "en";
  for (const char* name : {"CUFIT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"}) {
    const std::string value = variables.variable(name).value_or("");
    if (!value.empty()) return starts_with(lower(value), "zh") ? "zh" : "en";
  }
  return "en";
}

bool wants_colour(const host::Host& variables, Colour colour) {
  if (colour != Colour::automatic) return colour == Colour::always;
  return host::is_terminal(host::Stream::out) &&
         variables.variable("NO_COLOR").value_or("").empty() &&
         variables.variable("TERM").value_or("") != "dumb";
}

int terminal_width(const host::Host& variables) {
  const int columns = std::atoi(variables.variable("COLUMNS").value_or("").c_str());
  if (columns > 0) return columns;
  const int of_terminal = host::terminal_columns();
  return of_terminal > 0 ? of_terminal : k_usual_width;
}

}  // namespace

Streams standard_streams() {
  return {[](std::string_view text) {
            const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
            return std::fflush(stdout) == 0 && written;
          },
          [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }};
}

Output::Output(const host::Host& variables, const knowledge::Knowledge& knowledge, Streams streams,
               std::optional<Language> asked, Colour colour)
    : knowledge_(knowledge), streams_(std::move(streams)) {
  style_.lang = language_of(variables, asked);
  style_.colour = wants_colour(variables, colour);
  style_.width = std::clamp(terminal_width(variables), 40, 120);
}

report::Style Output::style(bool verbose) const {
  report::Style out = style_;
  out.verbose = verbose;
  return out;
}

int Output::print(std::string_view text, int exit_code) const {
  const host::FileLimit limit;
  if (streams_.out(text)) return exit_code;
  print_error("stdout could not be written");
  return k_failed;
}

void Output::print_beside(std::string_view text) const {
  const host::FileLimit limit;
  streams_.error(text);
}

void Output::print_error(const std::string& message) const {
  print_message(report::translated_error(message, style_.lang, knowledge_));
}

void Output::print_message(const std::string& message) const {
  const host::FileLimit limit;  // a full log must not keep `run` from its program
  // It names files, words of configurations and what programs said: nothing that a terminal obeys.
  streams_.error("cufit: " + report::printable(message) + "\n");
}

int Output::exit_code_for(const Error& error) const {
  print_error(error.text());
  return error.code == Code::usage ? k_usage : k_failed;
}

std::string Context::message(std::string_view key,
                             const std::map<std::string, std::string>& args) const {
  return report::message(knowledge, key, language(), args);
}

}  // namespace cufit::commands
