// SPDX-License-Identifier: Apache-2.0
#include "commands/args.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "base/nearest.h"
#include "base/shell_word.h"
#include "commands/help.h"
#include "formats/prose/printable.h"

namespace cufit::commands {
namespace {

constexpr Option k_common[] = {
    option<&CommonOptions::language>("--lang", "LANG", "en zh"),
    option<&CommonOptions::colour>("--color", "WHEN", "auto always never"),
    option<&CommonOptions::help>("-h,--help"),
};

// CLI11 names an unknown option in its own words; ours adds the nearest one.
Error unknown_argument(const Command& command, const std::string& typed) {
  std::vector<std::string> names;
  bool starts_program = false, reads_recording = false;
  for (const Option* option : options_of(command)) {
    if (!is_positional(*option)) names.push_back("--" + option_name(*option));
    starts_program = starts_program || option->flags == "COMMAND";
    reads_recording = reads_recording || option->flags == "--from";
  }
  std::string head = typed.substr(0, typed.find('='));
  std::vector<std::string> close = nearest(head, names, 1);
  std::string message = format("`cufit {}` does not take `{}`", command.name, typed);
  const bool file = typed.size() > 5 && typed.compare(typed.size() - 5, 5, ".json") == 0;
  if (reads_recording && file && typed[0] != '-')
    message +=
        format("; it reads a recording so: `cufit {} --from {}`", command.name, shell_word(typed));
  else if (close.empty() && starts_program)
    message += format("; options of a program come after `--`: `cufit {} -- PROGRAM {}`",
                      command.name, typed);
  else if (close.empty())
    message += format("; see `cufit {} --help`", command.name);
  else
    message += format("; did you mean `{}`?", close[0]);
  return fail(Code::usage, message);
}

bool is_switch(const Option& option) { return !is_positional(option) && option.value.empty(); }

void add_value_option(CLI::App& app, const Option& option, std::vector<std::string>& values) {
  CLI::Option* added = app.add_option(std::string(option.flags), values);
  // One value a time, so that a PATH may follow.
  if (!is_positional(option)) added->expected(1)->allow_extra_args(false);
  if (option.repeats) {
    if (is_positional(option)) added->expected(-1);
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  } else {
    // Without this a positional swallows the words of the next one: it is bound to a list.
    if (is_positional(option)) added->expected(1)->allow_extra_args(false);
    // Of an option all of them: check_once() says which two there are.
    added->multi_option_policy(is_positional(option) ? CLI::MultiOptionPolicy::TakeLast
                                                     : CLI::MultiOptionPolicy::TakeAll);
  }
  if (!option.choices.empty()) added->check(CLI::IsMember(choices_of(option)));
}

bool is_common(const Option& option) {
  return option.request_type == &k_request_type<CommonOptions>;
}

// Of two values one would be dropped without a word. What all commands take is no mistake: it stands in an alias, and is
// changed behind it.
Result<void> check_once(const Command& command, const Option& option,
                        const std::vector<std::string>& values) {
  if (option.repeats || is_positional(option) || is_common(option)) return {};
  for (const std::string& value : values)
    if (value != values[0])
      return fail(
          Code::usage,
          format("`cufit {}`: `--{}` is given twice, with `{}` and `{}`; it takes one value",
                 command.name, option_name(option), formats::printable(values[0], 80),
                 formats::printable(value, 80)));
  return {};
}

void put(const Option& option, const std::string& value, ParsedArguments& out) {
  const std::vector<std::string> choices = choices_of(option);
  const auto choice =
      static_cast<size_t>(std::find(choices.begin(), choices.end(), value) - choices.begin());
  option.put(is_common(option) ? static_cast<void*>(&out.common) : out.request.get(), value,
             choice);
}

}  // namespace

std::span<const Option> common_options() { return k_common; }

std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> all;
  for (const Option& option : command.options) all.push_back(&option);
  for (const Option& option : common_options()) all.push_back(&option);
  return all;
}

std::vector<std::string> choices_of(const Option& option) {
  std::vector<std::string> out;
  for (std::string_view word : split(option.choices, ' '))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

Result<ParsedArguments> parse_arguments(const Command& command, int argc, const char* const* argv) {
  CLI::App app;
  app.set_help_flag();
  std::map<std::string, std::vector<std::string>>
      texts;  // node-based: CLI11 keeps pointers to the values
  std::map<std::string, bool> switches;
  for (const Option* option : options_of(command)) {
    const std::string name = option_name(*option);
    if (is_switch(*option))
      app.add_flag(std::string(option->flags), switches[name]);
    else
      add_value_option(app, *option, texts[name]);
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
  ParsedArguments out;
  out.request = command.make_request();
  for (const Option* option : options_of(command)) {
    const std::string name = option_name(*option);
    if (is_switch(*option) && switches[name]) put(*option, "", out);
    if (is_switch(*option)) continue;
    if (Result<void> once = check_once(command, *option, texts[name]); !once) return once.error();
    for (const std::string& value : texts[name]) {
      // An unset variable of a script, not the wish to leave the option out.
      if (value.empty() && !is_positional(*option) && !option->may_be_empty)
        return fail(Code::usage,
                    format("`cufit {}`: `--{}` needs a value, and the one given is empty",
                           command.name, name));
      put(*option, value, out);
    }
  }
  return out;
}

}  // namespace cufit::commands
