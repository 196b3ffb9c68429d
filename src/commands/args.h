// SPDX-License-Identifier: Apache-2.0
// Command-line parsing by CLI11, whose header is included in args.cc only. Everything it needs
// stands in the command's row; texts of help come from data/messages/help.toml.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/command.h"

namespace cufit::commands {

// argv after the command's name. Error{usage} with one sentence and, where a name is close, a
// suggestion.
Result<Arguments> parse_arguments(const Command& command, int argc, const char* const* argv);

// "verbose" of "-v,--verbose"; "PATH" of "PATH".
std::string option_name(const Option& option);

// The key of a command in data/messages/help.toml: "mem-replay" of "mem replay".
std::string help_key(const Command& command);

// The options that every command has, after its own: --lang, --color, -h.
std::span<const Option> common_options();

// Help text of a command or an option in a language: data/messages "help.<command>.<option>".
std::string help_of(const Command& command, const Option& option, const std::string& lang);
std::string summary_of(const Command& command, const std::string& lang);
std::string usage_text(const Command& command, const std::string& lang);

}  // namespace cufit::commands
