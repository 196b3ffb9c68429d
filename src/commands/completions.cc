// SPDX-License-Identifier: Apache-2.0
// What a value is (file, directory, one of some words) is told from the row: `choices`, else the
// name of the value.
#include <algorithm>

#include "base/format.h"
#include "commands/args.h"
#include "commands/docs.h"

namespace cufit::commands {
namespace {

bool is_positional(const Option& option) { return option.flags[0] != '-'; }
bool takes_value(const Option& option) { return is_positional(option) || !option.value.empty(); }

enum class Kind { words, directory, file, text };
Kind kind_of(const Option& option) {
  if (!option.choices.empty()) return Kind::words;
  std::string_view value = is_positional(option) ? option.flags : option.value;
  if (value == "DIR") return Kind::directory;
  if (contains(value, "FILE") || contains(value, "PATH") || value == "RECORDING") return Kind::file;
  return Kind::text;
}

std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> all;
  for (const Option& option : command.options) all.push_back(&option);
  for (const Option& option : common_options()) all.push_back(&option);
  return all;
}

std::string replaced(std::string_view text, std::string_view set, std::string_view before) {
  std::string out;
  for (char c : text) {
    if (set.find(c) != std::string_view::npos) out += before;
    out += c;
  }
  return out;
}

// --- bash
// ------------------------------------------------------------------------------------------------------

std::string bash_reply(const Option& option) {
  switch (kind_of(option)) {
    case Kind::words:
      return format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))", option.choices);
    case Kind::directory:
      return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
    case Kind::file:
      return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
    case Kind::text:
      return ":";
  }
  return ":";
}

std::string bash(std::span<const Command> commands) {
  std::string names, values, words;
  for (const Command& command : commands) {
    if (!command.hidden) names += std::string(command.name) + " ";
    std::string flags, rest = ":";
    for (const Option* option : options_of(command)) {
      if (is_positional(*option)) {
        if (rest == ":") rest = bash_reply(*option);
        continue;
      }
      std::string pattern;
      for (std::string_view flag : split(option->flags, ',')) {
        flags += std::string(flag) + " ";
        pattern +=
            (pattern.empty() ? "" : "|") + std::string(command.name) + ":" + std::string(flag);
      }
      if (takes_value(*option))
        values += format("    {}) {}; return ;;\n", pattern, bash_reply(*option));
    }
    flags.pop_back();
    words += format(
        "    {}) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); else {}; "
        "fi ;;\n",
        command.name, flags, rest);
  }
  return "# bash completion for cufit\n"
         "_cufit() {\n"
         "  local cur prev\n"
         "  COMPREPLY=()\n"
         "  cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
         "  prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         "--help --version --lang\" -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"${COMP_WORDS[1]}:$prev\" in\n" +
         values +
         "  esac\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         words +
         "  esac\n"
         "}\n"
         "complete -F _cufit cufit\n";
}

// --- zsh
// -------------------------------------------------------------------------------------------------------

// Inside '...' and, for _arguments, inside [...] and between colons.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : replaced(text, "[]:\\", "\\"))
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

std::string zsh_action(const Option& option) {
  std::string_view name = is_positional(option) ? option.flags : option.value;
  std::string what = ":" + zsh_text(name) + ":";
  switch (kind_of(option)) {
    case Kind::words:
      return what + "(" + std::string(option.choices) + ")";
    case Kind::directory:
      return what + "_files -/";
    case Kind::file:
      return what + "_files";
    case Kind::text:
      return what + " ";
  }
  return what;
}

std::string zsh_spec(const Command& command, const Option& option) {
  if (is_positional(option))
    return "'" + std::string(option.repeats ? "*" : "") + zsh_action(option) + "'";
  std::string help = "[" + zsh_text(help_of(command, option, "en")) + "]";
  std::string tail = "'" + help + (takes_value(option) ? zsh_action(option) : "") + "'";
  std::string flags(option.flags);
  if (option.repeats) return "'*" + flags + tail.substr(1);
  if (!contains(flags, ",")) return "'" + flags + tail.substr(1);
  std::string both = flags;
  std::replace(both.begin(), both.end(), ',', ' ');
  return "'(" + both + ")'{" + flags + "}" + tail;
}

std::string zsh(std::span<const Command> commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    if (!command.hidden)
      names +=
          "    '" + std::string(command.name) + ":" + zsh_text(summary_of(command, "en")) + "'\n";
    cases += "    " + std::string(command.name) + ")\n      _arguments -s";
    for (const Option* option : options_of(command))
      cases += " \\\n        " + zsh_spec(command, *option);
    cases += "\n      ;;\n";
  }
  return "#compdef cufit\n"
         "_cufit() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe -t commands 'cufit command' commands\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case \"$words[1]\" in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _cufit ]]; then _cufit \"$@\"; else compdef _cufit cufit; fi\n";
}

// --- fish
// ------------------------------------------------------------------------------------------------------

std::string fish_text(std::string_view text) { return "'" + replaced(text, "'\\", "\\") + "'"; }

std::string fish_value(const Option& option) {
  switch (kind_of(option)) {
    case Kind::words:
      return " -x -a " + fish_text(option.choices);
    case Kind::directory:
      return " -x -a '(__fish_complete_directories)'";
    case Kind::file:
      return " -r -F";
    case Kind::text:
      return " -x";
  }
  return "";
}

std::string fish(std::span<const Command> commands) {
  std::string out = "# fish completion for cufit\ncomplete -c cufit -f\n";
  for (const Command& command : commands) {
    if (command.hidden) continue;
    out += format("complete -c cufit -n __fish_use_subcommand -a {} -d {}\n", command.name,
                  fish_text(summary_of(command, "en")));
  }
  for (const Command& command : commands) {
    for (const Option* option : options_of(command)) {
      out += format("complete -c cufit -n '__fish_seen_subcommand_from {}'", command.name);
      if (is_positional(*option)) {
        std::string value = fish_value(*option);
        out += kind_of(*option) == Kind::file    ? " -F"
               : kind_of(*option) == Kind::words ? value.substr(3)
                                                 : "";
      } else {
        for (std::string_view flag : split(option->flags, ',')) {
          out += starts_with(flag, "--") ? " -l " + std::string(flag.substr(2))
                                         : " -s " + std::string(flag.substr(1));
        }
        if (takes_value(*option)) out += fish_value(*option);
      }
      std::string help = help_of(command, *option, "en");
      if (!help.empty()) out += " -d " + fish_text(help);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::string completions(std::string_view shell, std::span<const Command> commands) {
  if (shell == "bash") return bash(commands);
  if (shell == "zsh") return zsh(commands);
  if (shell == "fish") return fish(commands);
  return {};
}

}  // namespace cufit::commands
