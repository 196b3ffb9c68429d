// SPDX-License-Identifier: Apache-2.0
// gen-tables refuses what would make a number untraceable or a text half translated, and says file
// and line.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/places.h"

namespace gen_tables_test {

namespace fs = std::filesystem;

struct Outcome {
  bool accepted = false;
  std::string message;
};

Outcome generate(const std::string& file, const std::string& bytes) {
  const fs::path data = fs::path(testing::TempDir()) / "cufit_gen_tables";
  fs::remove_all(data);
  fs::create_directories((data / file).parent_path());
  std::ofstream(data / file, std::ios::binary) << bytes;
  const std::string command = "'" + cufit::test::binary_dir() + "/gen-tables' " + data.string() +
                              " " + (data / "out.cc").string() + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return outcome;
  char buffer[512];
  while (size_t size = fread(buffer, 1, sizeof buffer, pipe)) outcome.message.append(buffer, size);
  outcome.accepted = pclose(pipe) == 0;
  fs::remove_all(data);
  return outcome;
}

const std::string k_finding =
    "id = \"x\"\nlayer = \"build\"\naction = \"none\"\nsource = \"s\"\nargs = [\"a\"]\n";

TEST(GenTables, AcceptsARowWithSourceAndDate) {
  EXPECT_TRUE(
      generate("t.toml",
               "[branch]\nsource = \"s\"\ndate = 2026-11-21\nrows = [{branch = 1, cuda = \"2\"}]\n")
          .accepted);
  EXPECT_TRUE(
      generate("t.toml",
               "[branch]\nrows = [{branch = 1, cuda = \"2\", source = \"s\", date = 2026-11-21}]\n")
          .accepted);
}

TEST(GenTables, RefusesRows) {
  struct Row {
    const char *what, *toml, *message;
  };
  const Row rows[] = {
      {"no source", "[branch]\ndate = 2026-11-21\nrows = [\n{branch = 1, cuda = \"2\"},\n]\n",
       "t.toml:4: row without `source`"},
      {"no date", "[branch]\nsource = \"s\"\nrows = [\n{branch = 1, cuda = \"2\"},\n]\n",
       "t.toml:4: row without `date`"},
      {"missing key", "[branch]\nsource = \"s\"\ndate = 2026-11-21\nrows = [\n{branch = 1},\n]\n",
       "t.toml:5: row lacks `cuda`"},
      {"unknown key",
       "[branch]\nsource = \"s\"\ndate = 2026-11-21\nrows = [{branch = 1, cuda = \"2\", cdua = "
       "\"3\"}]\n",
       "t.toml:4: unknown key `cdua`"},
      {"wrong type",
       "[branch]\nsource = \"s\"\ndate = 2026-11-21\nrows = [{branch = \"1\", cuda = \"2\"}]\n",
       "t.toml:4: `branch` has the wrong type"},
      {"unknown table", "[brunch]\nsource = \"s\"\n", "t.toml:1: unknown table `brunch`"},
      {"broken TOML", "[branch]\nsource = \n", "t.toml:2: "},
  };
  for (const Row& row : rows) {
    const Outcome outcome = generate("t.toml", row.toml);
    EXPECT_FALSE(outcome.accepted) << row.what;
    EXPECT_NE(outcome.message.find(row.message), std::string::npos)
        << row.what << ": " << outcome.message;
  }
}

TEST(GenTables, RefusesTexts) {
  const std::string both =
      "[en]\ntitle = \"t\"\nwhy = \"w {a}\"\nnext = \"n\"\n[zh]\ntitle = \"t\"\nwhy = \"w "
      "{a}\"\nnext = \"n\"\n";
  EXPECT_TRUE(generate("findings/x.toml", k_finding + both).accepted);
  const std::pair<std::string, const char*> cases[] = {
      {"[en]\ntitle = \"t\"\nwhy = \"w\"\nnext = \"n\"\n[zh]\ntitle = \"t\"\nwhy = \"w\"\n",
       "`next` lacks `zh`"},
      {"[en]\ntitle = \"t\"\nwhy = \"w {a}\"\nnext = \"n\"\n[zh]\ntitle = \"t\"\nwhy = \"w\"\nnext "
       "= \"n\"\n",
       "differ in placeholders"},
      {"[en]\ntitle = \"t {a}\"\nwhy = \"w\"\nnext = \"n\"\n[zh]\ntitle = \"t {a}\"\nwhy = "
       "\"w\"\nnext = \"n\"\n",
       "a title has no placeholders"},
      {"[en]\ntitle = \"t\"\nwhy = \"w {b}\"\nnext = \"n\"\n[zh]\ntitle = \"t\"\nwhy = \"w "
       "{b}\"\nnext = \"n\"\n",
       "asks for {b}, not in `args`"},
      {"[en]\ntitle = \"t\"\nnext = \"n\"\n[zh]\ntitle = \"t\"\nnext = \"n\"\n",
       "lacks the text `why`"},
  };
  for (const auto& [toml, message] : cases) {
    const Outcome outcome = generate("findings/x.toml", k_finding + toml);
    EXPECT_FALSE(outcome.accepted) << message;
    EXPECT_NE(outcome.message.find(message), std::string::npos)
        << message << ": " << outcome.message;
  }
  EXPECT_FALSE(
      generate("findings/y.toml", k_finding + both).accepted);  // the id is the file's name
  EXPECT_FALSE(generate("messages/m.toml", "[link]\nok = { en = \"ok\" }\n").accepted);
  EXPECT_TRUE(
      generate("messages/m.toml", "[link]\nok = { en = \"ok\", zh = \"正常\" }\n").accepted);
}

}  // namespace gen_tables_test
