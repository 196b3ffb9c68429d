// SPDX-License-Identifier: Apache-2.0
// The texts of the commands, of data/messages/help.toml: "help.<command>.<option>".
#pragma once

#include <string>
#include <string_view>

#include "commands/command.h"
#include "knowledge/knowledge.h"

namespace cufit::commands {

// "verbose" of "-v,--verbose"; "PATH" of "PATH".
std::string option_name(const Option& option);

// The key of a command in data/messages/help.toml: "mem-replay" of "mem replay".
std::string help_key(const Command& command);

class HelpTexts {
 public:
  HelpTexts(const knowledge::Knowledge& knowledge, std::string lang)
      : knowledge_(knowledge), lang_(std::move(lang)) {}

  std::string message(std::string_view key) const;
  std::string summary(const Command& command) const;
  std::string option(const Command& command, const Option& option) const;
  std::string usage(const Command& command) const;  // `cufit COMMAND --help`

 private:
  const knowledge::Knowledge& knowledge_;
  std::string lang_;
};

}  // namespace cufit::commands
