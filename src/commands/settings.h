// SPDX-License-Identifier: Apache-2.0
// How to talk to this user: language, colour, width. From options first, then the environment, then
// the terminal.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/command.h"
#include "report/report.h"

namespace cufit::commands {

// --lang, CUFIT_LANG, then LC_ALL / LC_MESSAGES / LANG: "zh*" is Chinese, everything else English.
std::string language(const Arguments& arguments);

// --color auto|always|never; auto: stdout is a terminal and NO_COLOR is not set. Width: COLUMNS,
// the terminal, 100.
report::Style style_for(const Arguments& arguments);

// The folders of `--env`, absolute: a report and its commands are read elsewhere than where cufit
// was started.
std::vector<std::string> env_folders(const Arguments& arguments);

// The language of what print_error() and exit_code_for() say; run() sets it before anything is
// said.
void set_language(std::string lang);
const std::string& language();

// Until every command takes a Context.
const Context& legacy_context();

// Writes results to stdout; Exit::k_failed when stdout is closed or full.
int print(const std::string& text, int exit_code);
// "cufit: <message>" on stderr, in the user's language where it is one of cufit's own sentences
// (report/error_translation.h).
void print_error(const std::string& message);
// The same as it is: a sentence in the user's language that quotes what a program said.
void print_message(const std::string& message);
// Says the error and returns the exit code that belongs to it.
int exit_code_for(const Error& error);

}  // namespace cufit::commands
