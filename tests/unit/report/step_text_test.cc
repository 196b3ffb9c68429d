// SPDX-License-Identifier: Apache-2.0
// What a report gives to copy: names from outside stay words of it, whatever they hold.
#include "report/step_text.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/shell_word.h"
#include "knowledge/finding_text.h"
#include "report/doctor_content.h"
#include "report/report.h"

namespace cufit::report {
namespace step_text_test {

namespace fs = std::filesystem;

TEST(StepText, QuotesByThePlaceInTheCommand) {
  const std::map<std::string, std::string> args = {{"a", "x y"}, {"b", "it's"}, {"c", "$(id)\""},
                                                   {"d", "-rf"}, {"e", "3.12"}, {"f", "b`id`c"}};
  const std::pair<const char*, const char*> whole[] = {
      {"ls {a} {e}", "ls 'x y' 3.12"},
      {"ls {b}", "ls 'it'\\''s'"},
      {"rm -r '{b}'", "rm -r 'it'\\''s'"},
      {"export V=\"{c}\"", "export V=\"\\$(id)\\\"\""},
      {"rm {d}", "rm ./-rf"},
      {"pkg=={d}", "pkg==-rf"},
      {"source {a}/bin", "source 'x y'/bin"},
      {"ls {f}", "ls 'b'\"$(printf '\\140')\"'id'\"$(printf '\\140')\"'c'"},
      {"ls \"{f}\"", "ls \"b$(printf '\\140')id$(printf '\\140')c\""},
      {"awk '{{print}}' {e} {none}", "awk '{print}' 3.12 {none}"},
  };
  for (const auto& [text, want] : whole) EXPECT_EQ(fill_step(text, args, true), want);
  EXPECT_EQ(fill_step("See {f}'s; `ls {a}`, then {a}", args, false),
            "See b'id'c's; `ls 'x y'`, then x y");
}

// {names} of a text.
std::set<std::string> names_in(std::string_view text) {
  std::set<std::string> out;
  for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const size_t close = text.find('}', at);
    if (close != text.npos) out.emplace(text.substr(at + 1, close - at - 1));
  }
  return out;
}

// Every step of data/findings with hostile arguments, as /bin/sh reads what the report sets apart
// as a command. No program is found, so that only what breaks out of a word does anything.
TEST(StepText, NothingBreaksOutOfACommand) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  const fs::path folder = fs::temp_directory_path() / format("cufit-steps-{}", getpid());
  fs::create_directory(folder);
  size_t commands = 0;
  for (const std::string payload :
       {"$(:>PWNED)", ";:>PWNED;", "`:>PWNED`", "';:>PWNED;'", "\";:>PWNED;\"", "&:>PWNED;#"}) {
    std::ofstream script(folder / "s");
    for (const knowledge::FindingTexts& texts : knowledge.findings) {
      for (const knowledge::TextPair& pair : texts.texts) {
        const std::string key(pair.key);
        if (!starts_with(key, "next")) continue;
        checks::Finding finding;
        finding.id = texts.id;
        if (key.size() > 5) finding.variant = key.substr(5);
        for (const std::string& name : names_in(pair.en)) finding.args[name] = payload;
        for (const char* ready : {"at", "command", "family", "install", "install_a", "install_b",
                                  "patched", "pip_install", "reinstall", "wanted_words"})
          if (finding.args.count(ready)) finding.args[ready] = " x";
        const auto text = [&](const char* lang) {
          return finding_text(finding, "next", lang, knowledge);
        };
        for (const Piece& piece : next_pieces(text("en"), text("en"), text("zh"))) {
          if (!piece.command) continue;
          ++commands;
          script << "(eval " << shell_word(piece.text) << ")\n";
        }
      }
    }
    script.close();
    const std::string run =
        format("cd '{}' && PATH=/nonexistent /bin/sh s >out 2>&1", folder.string());
    (void)std::system(run.c_str());
    EXPECT_FALSE(fs::exists(folder / "PWNED")) << payload;
    fs::remove(folder / "PWNED");
  }
  EXPECT_GT(commands, 600u);
  fs::remove_all(folder);
}

}  // namespace step_text_test
}  // namespace cufit::report
