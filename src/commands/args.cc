// SPDX-License-Identifier: Apache-2.0
#include "commands/args.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "base/nearest.h"
#include "knowledge/knowledge.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr Option k_common[] = {
    {"--lang", "LANG", "", false, "en zh"},
    {"--color", "WHEN", "", false, "auto always never"},
    {"-h,--help", "", "", false, ""},
};

std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> all;
  for (const Option& option : command.options) all.push_back(&option);
  for (const Option& option : common_options()) all.push_back(&option);
  return all;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view word : split(text, ' ')) {
    if (!word.empty()) out.emplace_back(word);
  }
  return out;
}

// CLI11 names an unknown option in its own words; ours adds the nearest one.
Error unknown_argument(const Command& command, const std::string& typed) {
  std::vector<std::string> names;
  bool starts_program = false;
  for (const Option* option : options_of(command)) {
    if (!is_positional(*option)) names.push_back("--" + option_name(*option));
    starts_program = starts_program || option->flags == "COMMAND";
  }
  std::string head = typed.substr(0, typed.find('='));
  std::vector<std::string> close = nearest(head, names, 1);
  std::string message = format("`cufit {}` does not take `{}`", command.name, typed);
  if (close.empty() && starts_program)
    message += format("; options of a program come after `--`: `cufit {} -- PROGRAM {}`",
                      command.name, typed);
  else if (close.empty())
    message += format("; see `cufit {} --help`", command.name);
  else
    message += format("; did you mean `{}`?", close[0]);
  return fail(Code::usage, message);
}

}  // namespace

std::span<const Option> common_options() { return k_common; }

std::string option_name(const Option& option) {
  std::string_view flags = option.flags;
  if (size_t comma = flags.find(','); comma != std::string_view::npos)
    flags.remove_prefix(comma + 1);
  size_t dashes = flags.find_first_not_of('-');
  return std::string(flags.substr(dashes == std::string_view::npos ? 0 : dashes));
}

Result<Arguments> parse_arguments(const Command& command, int argc, const char* const* argv) {
  CLI::App app;
  app.set_help_flag();
  std::map<std::string, std::vector<std::string>>
      texts;  // node-based: CLI11 keeps pointers to the values
  std::map<std::string, bool> switches;
  for (const Option* option : options_of(command)) {
    std::string name = option_name(*option);
    if (!is_positional(*option) && option->value.empty()) {
      app.add_flag(std::string(option->flags), switches[name]);
      continue;
    }
    CLI::Option* added = app.add_option(std::string(option->flags), texts[name]);
    // One value a time, so that a PATH may follow.
    if (!is_positional(*option)) added->expected(1)->allow_extra_args(false);
    if (option->repeats) {
      if (is_positional(*option)) added->expected(-1);
      added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      // Without this a positional swallows the words of the next one: it is bound to a list.
      if (is_positional(*option)) added->expected(1)->allow_extra_args(false);
      added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    if (!option->choices.empty()) added->check(CLI::IsMember(words(option->choices)));
  }
  try {
    std::vector<std::string> reversed;  // CLI11 takes the words back to front
    for (int i = argc - 1; i >= 0; --i) reversed.emplace_back(argv[i]);
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> extra = app.remaining();
    return unknown_argument(command, extra.empty() ? "" : extra.front());
  } catch (const CLI::ParseError& error) {
    return fail(Code::usage, format("`cufit {}`: {}", command.name, error.what()));
  }
  Arguments arguments;
  for (const auto& [name, given] : switches) {
    if (given) arguments.add(name, "");
  }
  for (const auto& [name, values] : texts) {
    for (const std::string& value : values) arguments.add(name, value);
  }
  return arguments;
}

std::string help_key(const Command& command) {
  std::string key(command.name);
  std::replace(key.begin(), key.end(), ' ', '-');
  return key;
}

std::string help_of(const Command& command, const Option& option, const std::string& lang) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  std::string name = option_name(option);
  std::string_view text = knowledge.message(format("help.{}.{}", help_key(command), name), lang);
  if (text.empty()) text = knowledge.message(format("help.common.{}", name), lang);
  return std::string(text);
}

std::string summary_of(const Command& command, const std::string& lang) {
  return std::string(
      knowledge::Knowledge::builtin().message(format("help.{}.summary", help_key(command)), lang));
}

std::string usage_text(const Command& command, const std::string& lang) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
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
    std::string text = help_of(command, *option, lang);
    if (!option->choices.empty()) text += format(" ({})", join(words(option->choices), "|"));
    bool first = true;
    for (const std::string& part : report::wrap(text, 70)) {
      rows += "  " + report::pad(first ? left : "", 24) + " " + part + "\n";
      first = false;
    }
  }
  line += format(" [{}]{}\n", knowledge.message("help.words.options", lang), program);
  return line + "\n" + summary_of(command, lang) + "\n\n" + rows;
}

bool Arguments::has(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(),
                     [&](const auto& one) { return one.first == name; });
}
std::string Arguments::get(std::string_view name, std::string_view otherwise) const {
  std::string out(otherwise);
  for (const auto& [key, value] : values_) {
    if (key == name) out = value;
  }
  return out;
}
std::vector<std::string> Arguments::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : values_) {
    if (key == name) out.push_back(value);
  }
  return out;
}
void Arguments::add(std::string name, std::string value) {
  values_.emplace_back(std::move(name), std::move(value));
}

}  // namespace cufit::commands
