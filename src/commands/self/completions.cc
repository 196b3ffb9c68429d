// SPDX-License-Identifier: Apache-2.0
// What a value is (file, directory, one of some words) is told from the row: `choices`, else the
// name of the value.
#include <algorithm>

#include "base/format.h"
#include "commands/args.h"
#include "commands/help.h"
#include "commands/self/docs.h"

namespace cufit::commands {
namespace {

bool takes_value(const Option& option) { return is_positional(option) || !option.value.empty(); }

enum class Kind { words, directory, file, gpu, text };
Kind kind_of(const Option& option) {
  if (option.flags == "--gpu") return Kind::gpu;
  if (!option.choices.empty()) return Kind::words;
  std::string_view value = is_positional(option) ? option.flags : option.value;
  if (value == "DIR") return Kind::directory;
  if (contains(value, "FILE") || value == "SNAPSHOT" || contains(value, "PATH") ||
      value == "RECORDING")
    return Kind::file;
  return Kind::text;
}

std::string replaced(std::string_view text, std::string_view set, std::string_view before) {
  std::string out;
  for (char c : text) {
    if (set.find(c) != std::string_view::npos) out += before;
    out += c;
  }
  return out;
}

std::vector<std::string> families_of(std::span<const Command> commands) {
  std::vector<std::string> out;
  for (const Command& command : commands) {
    const std::string family(family_of(command));
    if (!family.empty() && std::find(out.begin(), out.end(), family) == out.end())
      out.push_back(family);
  }
  return out;
}

// What may stand right after `cufit`, each followed by a blank.
std::string first_words(std::span<const Command> commands) {
  std::string out;
  for (const Command& command : commands)
    if (!command.hidden && family_of(command).empty()) out += std::string(command.name) + " ";
  for (const std::string& family : families_of(commands)) out += family + " ";
  return out;
}

std::string second_word(const Command& command) {
  return std::string(command.name.substr(family_of(command).size() + 1));
}

std::string second_words(std::span<const Command> commands, std::string_view family) {
  std::vector<std::string> out;
  for (const Command& command : commands)
    if (family_of(command) == family) out.push_back(second_word(command));
  return join(out, " ");
}

// "RTX 3090": what people type of each GPU of the table, where it means that one.
std::vector<std::string> gpu_names(const knowledge::Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const knowledge::Gpu& gpu : knowledge.gpus) {
    std::string name(gpu.name);
    for (const char* brand : {"GeForce ", "Tesla ", "Quadro "})
      if (starts_with(name, brand) &&
          knowledge.find_gpu(name.substr(std::string_view(brand).size())) == &gpu)
        name.erase(0, std::string_view(brand).size());
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
  }
  return out;
}

std::string quoted_names(const knowledge::Knowledge& knowledge) {
  std::string out;
  for (const std::string& name : gpu_names(knowledge))
    out += " '" + replaced(name, "'", "'\\'") + "'";
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
    case Kind::gpu:
      return "_cufit_gpu";
    case Kind::text:
      return ":";
  }
  return ":";
}

// Names hold blanks, and of a word that is typed with quotes or backslashes bash hands over all.
std::string bash_gpus(const knowledge::Knowledge& knowledge) {
  return "_cufit_gpu() {\n"
         "  local name word=\"${cur#[\\\"\\']}\"\n"
         "  word=\"${word//\\\\/}\"\n"
         "  for name in" +
         quoted_names(knowledge) +
         "; do\n"
         "    [[ ${name,,} == \"${word,,}\"* ]] || continue\n"
         "    [[ $cur == [\\\"\\']* ]] || printf -v name %q \"$name\"\n"
         "    COMPREPLY+=(\"$name\")\n"
         "  done\n"
         "}\n";
}

std::string bash(std::span<const Command> commands, const knowledge::Knowledge& knowledge) {
  std::string names = first_words(commands), values, words;
  for (const Command& command : commands) {
    std::string flags, rest = ":";
    for (const Option* option : options_of(command)) {
      if (is_positional(*option)) {
        if (rest == ":") rest = bash_reply(*option);
        continue;
      }
      std::string pattern;
      for (std::string_view flag : split(option->flags, ',')) {
        flags += std::string(flag) + " ";
        pattern += format("{}'{}:{}'", pattern.empty() ? "" : "|", command.name, flag);
      }
      if (takes_value(*option))
        values += format("    {}) {}; return ;;\n", pattern, bash_reply(*option));
    }
    flags.pop_back();
    words += format(
        "    '{}') if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); else "
        "{}; "
        "fi ;;\n",
        command.name, flags, rest);
  }
  std::string families;
  for (const std::string& family : families_of(commands))
    families += format(
        "  if [[ ${{COMP_WORDS[1]}} == {} ]]; then\n"
        "    if [[ $COMP_CWORD -eq 2 ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); "
        "return; "
        "fi\n"
        "    command=\"{} ${{COMP_WORDS[2]}}\"\n"
        "  fi\n",
        family, second_words(commands, family), family);
  return "# bash completion for cufit\n" + bash_gpus(knowledge) +
         "_cufit() {\n"
         "  local cur prev command\n"
         "  COMPREPLY=()\n"
         "  cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
         "  prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         "--help --version --lang\" -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  command=\"${COMP_WORDS[1]}\"\n" +
         families + "  case \"$command:$prev\" in\n" + values +
         "  esac\n"
         "  case \"$command\" in\n" +
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
    case Kind::gpu:
      return what + "_cufit_gpu";
    case Kind::text:
      return what + " ";
  }
  return what;
}

std::string zsh_spec(const Command& command, const Option& option, const HelpTexts& help) {
  if (is_positional(option))
    return "'" + std::string(option.repeats ? "*" : "") + zsh_action(option) + "'";
  std::string text = "[" + zsh_text(help.option(command, option)) + "]";
  std::string tail = "'" + text + (takes_value(option) ? zsh_action(option) : "") + "'";
  std::string flags(option.flags);
  if (option.repeats) return "'*" + flags + tail.substr(1);
  if (!contains(flags, ",")) return "'" + flags + tail.substr(1);
  std::string both = flags;
  std::replace(both.begin(), both.end(), ',', ' ');
  return "'(" + both + ")'{" + flags + "}" + tail;
}

std::string zsh(std::span<const Command> commands, const HelpTexts& help,
                const knowledge::Knowledge& knowledge) {
  std::string names, cases;
  for (const Command& command : commands) {
    const std::string name(command.name);
    if (!command.hidden && family_of(command).empty())
      names += "    '" + name + ":" + zsh_text(help.summary(command)) + "'\n";
    cases += "    '" + name + "')\n      _arguments -s";
    for (const Option* option : options_of(command))
      cases += " \\\n        " + zsh_spec(command, *option, help);
    cases += "\n      ;;\n";
  }
  std::string families;
  for (const std::string& family : families_of(commands)) {
    std::string members;
    for (const Command& command : commands)
      if (family_of(command) == family)
        members += format(" '{}:{}'", second_word(command), zsh_text(help.summary(command)));
    names += format("    '{}:cufit {} ...'\n", family, family);
    families += format(
        "  if [[ \"$words[1]\" == {} ]]; then\n"
        "    if (( CURRENT == 2 )); then\n"
        "      commands=({})\n"
        "      _describe -t commands 'cufit {} command' commands\n"
        "      return\n"
        "    fi\n"
        "    command=\"{} $words[2]\"\n"
        "    shift words\n"
        "    (( CURRENT-- ))\n"
        "  fi\n",
        family, members, family, family);
  }
  return "#compdef cufit\n"
         "_cufit_gpu() { compadd -M 'm:{a-z}={A-Z}' --" +
         quoted_names(knowledge) +
         "; }\n"
         "_cufit() {\n"
         "  local -a commands\n"
         "  local command\n"
         "  commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe -t commands 'cufit command' commands\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  command=\"$words[1]\"\n" +
         families + "  case \"$command\" in\n" + cases +
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
    case Kind::gpu:
      return " -x -a '(__cufit_gpus)'";
    case Kind::text:
      return " -x";
  }
  return "";
}

std::string fish(std::span<const Command> commands, const HelpTexts& help,
                 const knowledge::Knowledge& knowledge) {
  std::string out = "# fish completion for cufit\nfunction __cufit_gpus\n  printf '%s\\n'" +
                    quoted_names(knowledge) + "\nend\ncomplete -c cufit -f\n";
  for (const Command& command : commands) {
    if (command.hidden || !family_of(command).empty()) continue;
    out += format("complete -c cufit -n __fish_use_subcommand -a {} -d {}\n", command.name,
                  fish_text(help.summary(command)));
  }
  for (const std::string& family : families_of(commands)) {
    out += format("complete -c cufit -n __fish_use_subcommand -a {}\n", family);
    const std::string members = second_words(commands, family);
    for (const Command& command : commands)
      if (family_of(command) == family)
        out += format(
            "complete -c cufit -n '__fish_seen_subcommand_from {}; and not "
            "__fish_seen_subcommand_from {}' -a {} -d {}\n",
            family, members, second_word(command), fish_text(help.summary(command)));
  }
  for (const Command& command : commands) {
    const std::string family(family_of(command));
    const std::string condition =
        family.empty()
            ? format("'__fish_seen_subcommand_from {}'", command.name)
            : format("'__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'", family,
                     second_word(command));
    for (const Option* option : options_of(command)) {
      out += format("complete -c cufit -n {}", condition);
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
      std::string text = help.option(command, *option);
      if (!text.empty()) out += " -d " + fish_text(text);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::string completions(std::string_view shell, std::span<const Command> commands,
                        const knowledge::Knowledge& knowledge) {
  const HelpTexts help(knowledge, "en");
  if (shell == "bash") return bash(commands, knowledge);
  if (shell == "zsh") return zsh(commands, help, knowledge);
  if (shell == "fish") return fish(commands, help, knowledge);
  return {};
}

}  // namespace cufit::commands
