// SPDX-License-Identifier: Apache-2.0
#include "commands/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "host/files/rlimit_fsize_guard.h"
#include "host/process/this_process.h"
#include "knowledge/knowledge.h"
#include "report/error_translation.h"

namespace cufit::commands {
namespace {

int terminal_width() {
  if (int columns = std::atoi(host::process_variable("COLUMNS").c_str()); columns > 0)
    return columns;
  const int columns = host::terminal_columns();
  return columns > 0 ? columns : 100;
}

// One process speaks one language, and what goes wrong while arguments are read has to be said,
// too.
std::string& language_of_process() {
  static std::string lang = "en";
  return lang;
}

}  // namespace

void set_language(std::string lang) { language_of_process() = std::move(lang); }
const std::string& language() { return language_of_process(); }

const Context& legacy_context() {
  static const host::RealHost machine;
  static const Output output(machine, knowledge::Knowledge::builtin(), standard_streams(),
                             language() == "zh" ? Language::zh : Language::en, Colour::automatic);
  static const Context context{machine, machine, knowledge::Knowledge::builtin(),
                               [] { return std::time(nullptr); }, output};
  return context;
}

std::string language(const Arguments& arguments) {
  std::string chosen = arguments.get("lang");
  if (chosen.empty()) chosen = host::process_variable("CUFIT_LANG");
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    if (chosen.empty()) chosen = host::process_variable(name);
  }
  return starts_with(lower(chosen), "zh") ? "zh" : "en";
}

report::Style style_for(const Arguments& arguments) {
  report::Style style;
  style.lang = language(arguments);
  const std::string colour = arguments.get("color", "auto");
  style.colour = colour == "always" || (colour == "auto" && host::is_terminal(host::Stream::out) &&
                                        host::process_variable("NO_COLOR").empty() &&
                                        host::process_variable("TERM") != "dumb");
  style.width = std::clamp(terminal_width(), 40, 120);
  style.verbose = arguments.has("verbose");
  return style;
}

std::vector<std::string> env_folders(const Arguments& arguments) {
  std::vector<std::string> out;
  for (const std::string& given : arguments.all("env")) {
    std::error_code error;
    std::filesystem::path path = std::filesystem::absolute(given, error).lexically_normal();
    std::string text = error ? given : path.string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    out.push_back(text);
  }
  return out;
}

int print(const std::string& text, int exit_code) {
  const host::FileLimit limit;
  bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0) written = false;
  if (!written) {
    print_error("stdout could not be written");
    return k_failed;
  }
  return exit_code;
}

void print_error(const std::string& message) {
  print_message(report::translated_error(message, language(), knowledge::Knowledge::builtin()));
}

void print_message(const std::string& message) {
  const host::FileLimit limit;  // a full log must not keep `run` from its program
  std::fprintf(stderr, "cufit: %s\n", message.c_str());
}

int exit_code_for(const Error& error) {
  const host::FileLimit limit;  // a full log must not keep `run` from its program
  print_error(error.text());
  return error.code == Code::usage ? k_usage : k_failed;
}

}  // namespace cufit::commands
