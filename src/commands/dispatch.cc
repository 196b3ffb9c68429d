// SPDX-License-Identifier: Apache-2.0
// main's whole work: find the row, parse, run.
#include "base/format.h"
#include "base/nearest.h"
#include "commands/args.h"
#include "commands/command.h"
#include "commands/self/self.h"
#include "commands/settings.h"
#include "knowledge/knowledge.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

// Commands whose name begins with `family` ("mem"), or all.
int list_commands(const std::string& lang, std::string_view family = {}) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  std::string out = std::string(knowledge.message("help.words.about", lang)) + "\n\n";
  for (const Command& command : table()) {
    if (!family.empty() && family_of(command) != family) continue;
    out += "  " + report::pad(command.name, 14) + summary_of(command, lang) + "\n";
  }
  return print(out + "\n" + std::string(knowledge.message("help.words.more", lang)) + "\n", k_ok);
}

int unknown_command(const std::string& typed) {
  std::vector<std::string> names;
  for (const Command& command : table()) names.emplace_back(command.name);
  std::vector<std::string> close = nearest(typed, names, 1);
  print_error(close.empty() ? format("no command `{}`; see `cufit --help`", typed)
                            : format("no command `{}`; did you mean `cufit {}`?", typed, close[0]));
  return k_usage;
}

bool is_family(std::string_view word) {
  for (const Command& command : table())
    if (!family_of(command).empty() && family_of(command) == word) return true;
  return false;
}

bool asks_help(std::string_view word) { return word == "-h" || word == "--help" || word == "help"; }

}  // namespace

int run(int argc, const char* const* argv) {
  std::string first = argc > 1 ? argv[1] : "";
  int words = 1;
  Arguments common;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;  // the rest is a program's
    std::string lang;
    if (word == "--lang" && i + 1 < argc) lang = argv[i + 1];
    if (starts_with(word, "--lang=")) lang = std::string(word.substr(7));
    if (lang == "en" || lang == "zh") common.add("lang", lang);
  }
  set_language(language(common));
  if (first == "--lang" && argc > 3) {
    // Before the command it means the same as after it.
    std::vector<const char*> turned = {argv[0], argv[3]};
    int next = 4;
    if (is_family(argv[3]) && argc > 4) turned.push_back(argv[next++]);
    turned.insert(turned.end(), {argv[1], argv[2]});
    turned.insert(turned.end(), argv + next, argv + argc);
    return run(static_cast<int>(turned.size()), turned.data());
  }
  if (first.empty() || first == "--lang") return run_overview(common);
  if (asks_help(first)) return list_commands(language(common));
  if (first == "--version" || first == "-V")
    return print(format("cufit {}\n", CUFIT_VERSION), k_ok);
  if (is_family(first)) {
    const std::string second = argc > 2 ? argv[2] : "";
    if (second.empty() || second == "--lang" || asks_help(second))
      return list_commands(language(common), first);
    first += " " + second;
    words = 2;
  }
  for (const Command& command : table()) {
    if (command.name != first) continue;
    Result<Arguments> arguments = parse_arguments(command, argc - 1 - words, argv + 1 + words);
    if (!arguments) {
      print_error(arguments.error().text());
      return k_usage;
    }
    if (arguments->has("help")) return print(usage_text(command, language(*arguments)), k_ok);
    return command.run(*arguments);
  }
  return unknown_command(first);
}

}  // namespace cufit::commands
