// SPDX-License-Identifier: Apache-2.0
// Command-line parsing by CLI11, whose header is included in args.cc only. Everything it needs
// stands in the command's row; texts of help are those of help.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/command.h"

namespace cufit::commands {

// What every command takes beside its own options.
struct CommonOptions {
  std::optional<Language> language;
  Colour colour = Colour::automatic;
  bool help = false;
};

struct ParsedArguments {
  std::shared_ptr<void> request;  // what the command's row makes, filled
  CommonOptions common;
};

// argv after the command's name. Error{usage} with one sentence and, where a name is close, a
// suggestion.
Result<ParsedArguments> parse_arguments(const Command& command, int argc, const char* const* argv);

// The options that every command has, after its own: --lang, --color, -h.
std::span<const Option> common_options();

std::vector<const Option*> options_of(const Command& command);  // its own, then the common ones

std::vector<std::string> choices_of(const Option& option);

}  // namespace cufit::commands
