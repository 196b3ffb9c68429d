// SPDX-License-Identifier: Apache-2.0
#include "commands/help.h"

#include <algorithm>

#include "base/format.h"
#include "commands/args.h"
#include "report/terminal/width.h"

namespace cufit::commands {

std::string option_name(const Option& option) {
  std::string_view flags = option.flags;
  if (size_t comma = flags.find(','); comma != std::string_view::npos)
    flags.remove_prefix(comma + 1);
  size_t dashes = flags.find_first_not_of('-');
  return std::string(flags.substr(dashes == std::string_view::npos ? 0 : dashes));
}

std::string help_key(const Command& command) {
  std::string key(command.name);
  std::replace(key.begin(), key.end(), ' ', '-');
  return key;
}

std::string HelpTexts::message(std::string_view key) const {
  return std::string(knowledge_.message(key, lang_));
}

std::string HelpTexts::summary(const Command& command) const {
  return message(format("help.{}.summary", help_key(command)));
}

std::string HelpTexts::option(const Command& command, const Option& option) const {
  const std::string name = option_name(option);
  const std::string own = message(format("help.{}.{}", help_key(command), name));
  return own.empty() ? message(format("help.common.{}", name)) : own;
}

std::string HelpTexts::usage(const Command& command) const {
  std::string line = format("cufit {}", command.name);
  std::string rows, program;  // what stands after "--"
  for (const Option* option : options_of(command)) {
    std::string left(option->flags);
    if (size_t comma = left.find(','); comma != std::string::npos) left.insert(comma + 1, " ");
    if (!option->value.empty()) left += " " + std::string(option->value);
    if (is_positional(*option)) {
      const std::string name = std::string(option->flags) + (option->repeats ? "..." : "");
      if (name == "COMMAND...")
        program = " -- " + name;
      else
        line += option->required ? " " + name : " [" + name + "]";
    }
    std::string text = this->option(command, *option);
    if (!option->choices.empty()) text += format(" ({})", join(choices_of(*option), "|"));
    bool first = true;
    for (const std::string& part : report::wrap(text, 70)) {
      rows += "  " + report::pad(first ? left : "", 24) + " " + part + "\n";
      first = false;
    }
  }
  line += format(" [{}]{}\n", message("help.words.options"), program);
  return line + "\n" + summary(command) + "\n\n" + rows;
}

}  // namespace cufit::commands
