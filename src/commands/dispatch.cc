// SPDX-License-Identifier: Apache-2.0
// main's whole work: find the row, parse, run.
#include "base/format.h"
#include "base/nearest.h"
#include "commands/args.h"
#include "commands/command.h"
#include "commands/help.h"
#include "commands/self/self.h"
#include "commands/self/update_tables.h"
#include "knowledge/knowledge.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

// Commands whose name begins with `family` ("mem"), or all.
int list_commands(const Output& output, const knowledge::Knowledge& knowledge,
                  std::string_view family = {}) {
  const HelpTexts help(knowledge, output.language());
  std::string out = help.message("help.words.about") + "\n\n";
  for (const Command& command : table()) {
    if (!family.empty() && family_of(command) != family) continue;
    out += "  " + report::pad(command.name, 14) + help.summary(command) + "\n";
  }
  return output.print(out + "\n" + help.message("help.words.more") + "\n", k_ok);
}

int unknown_command(const std::string& typed, const Output& output) {
  std::vector<std::string> names;
  for (const Command& command : table()) names.emplace_back(command.name);
  std::vector<std::string> close = nearest(typed, names, 1);
  output.print_error(close.empty()
                         ? format("no command `{}`; see `cufit --help`", typed)
                         : format("no command `{}`; did you mean `cufit {}`?", typed, close[0]));
  return k_usage;
}

bool is_command(std::string_view name) {
  for (const Command& command : table())
    if (command.name == name) return true;
  return false;
}

// Whether `second` belongs to the name. `bench` is a command and has `bench loader` beside it.
bool takes_second_word(const std::string& word, const std::string& second) {
  if (is_command(word)) return is_command(word + " " + second);
  for (const Command& command : table())
    if (!family_of(command).empty() && family_of(command) == word) return true;
  return false;
}

bool asks_help(std::string_view word) { return word == "-h" || word == "--help" || word == "help"; }

// A language that is asked for anywhere before "--": what is wrong with the rest is said in it, too.
std::optional<Language> language_asked(int argc, const char* const* argv) {
  std::optional<Language> out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;  // the rest is a program's
    std::string_view lang;
    if (word == "--lang" && i + 1 < argc) lang = argv[i + 1];
    if (starts_with(word, "--lang=")) lang = word.substr(7);
    if (lang == "en") out = Language::en;
    if (lang == "zh") out = Language::zh;
  }
  return out;
}

int run_command(const Command& command, const Surroundings& around, std::optional<Language> asked,
                int argc, const char* const* argv) {
  const auto output_with = [&](const CommonOptions& common) {
    return Output(around.files, around.knowledge, around.streams, common.language, common.colour);
  };
  const Result<ParsedArguments> parsed = parse_arguments(command, argc, argv);
  if (!parsed) {
    output_with({asked}).print_error(parsed.error().text());
    return k_usage;
  }
  CommonOptions common = parsed->common;
  if (!common.language) common.language = asked;  // an option before took the word `--lang`
  const Output output = output_with(common);
  if (common.help)
    return output.print(HelpTexts(around.knowledge, output.language()).usage(command), k_ok);
  if (!around.note.empty()) output.print_error(around.note);
  return command.run({around.files, around.machine, around.knowledge, around.now, output},
                     parsed->request.get());
}

}  // namespace

int run(int argc, const char* const* argv) {
  const host::RealHost machine;
  const TablesInUse tables = tables_in_use(machine);
  const knowledge::Knowledge& knowledge =
      tables.updated ? tables.updated->knowledge() : knowledge::Knowledge::builtin();
  return run({machine, machine, knowledge, [] { return std::time(nullptr); }, standard_streams(),
              tables.older ? "" : tables.note},
             argc, argv);
}

int run(const Surroundings& around, int argc, const char* const* argv) {
  std::string first = argc > 1 ? argv[1] : "";
  int words = 1;
  const std::optional<Language> asked = language_asked(argc, argv);
  const Output output(around.files, around.knowledge, around.streams, asked, Colour::automatic);
  if (first == "--lang" && argc > 3) {
    // Before the command it means the same as after it.
    std::vector<const char*> turned = {argv[0], argv[3]};
    int next = 4;
    if (argc > 4 && takes_second_word(argv[3], argv[4])) turned.push_back(argv[next++]);
    turned.insert(turned.end(), {argv[1], argv[2]});
    turned.insert(turned.end(), argv + next, argv + argc);
    return run(around, static_cast<int>(turned.size()), turned.data());
  }
  if (first.empty() || first == "--lang")
    return run_overview({around.files, around.machine, around.knowledge, around.now, output});
  if (asks_help(first)) return list_commands(output, around.knowledge);
  if (first == "--version" || first == "-V")
    return output.print(format("cufit {}\n", CUFIT_VERSION), k_ok);
  const std::string second = argc > 2 ? argv[2] : "";
  if (takes_second_word(first, second)) {
    if (second.empty() || second == "--lang" || asks_help(second))
      return list_commands(output, around.knowledge, first);
    first += " " + second;
    words = 2;
  }
  for (const Command& command : table())
    if (command.name == first)
      return run_command(command, around, asked, argc - 1 - words, argv + 1 + words);
  return unknown_command(first, output);
}

}  // namespace cufit::commands
