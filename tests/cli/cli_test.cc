// SPDX-License-Identifier: Apache-2.0
// The whole program: every <command>/<case>.test below this folder is one test, named
// <command>_<case>. tests/README.md says how such a file is laid out and how to add one.
// UPDATE_GOLDEN=1 rewrites what is expected: read the difference before committing it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "cli/case_file.h"
#include "cli/case_run.h"
#include "knowledge/knowledge.h"
#include "support/places.h"

namespace cufit::cli_tests {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

fs::path cases_folder() { return fs::path(test::source_dir()) / "tests/cli"; }

// Relative to the folder: "run/policy.test".
std::vector<fs::path> cases() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(cases_folder())) {
    if (entry.path().extension() == ".test")
      out.push_back(entry.path().lexically_relative(cases_folder()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string case_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = fs::path(info.param).replace_extension().string();
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

Outcome run(const CaseFile& file) {
  char scratch[] = "/tmp/cufit-cli-XXXXXX";
  if (mkdtemp(scratch) == nullptr) return {"", "no folder below /tmp can be made", 127};
  const Place place = {test::source_dir(), test::program(), scratch};
  const Outcome outcome = file.columns == 0 ? run_piped(file.script, place)
                                            : run_on_terminal(file.script, place, file.columns);
  fs::remove_all(scratch);
  return outcome;
}

// A report ends with the date of its tables, which each new row of data/ may change.
std::string without_tables_date(std::string text) {
  const std::string date(knowledge::Knowledge::builtin().date);
  for (const std::string before :
       {"ables of ", "数据表日期：", "数据表日期 ", "数据表（", "\"tables_date\": \""}) {
    for (size_t at = 0; (at = text.find(before + date, at)) != std::string::npos;)
      text.replace(at + before.size(), date.size(), "YYYY-MM-DD");
  }
  return text;
}

// A preloaded guard and a sanitizer both stand before all functions of a program: together they crash it. tests/guard and
// these cases see the guard in every other build.
bool needs_the_guard(const CaseFile& file) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr bool k_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  constexpr bool k_sanitized = true;
#else
  constexpr bool k_sanitized = false;
#endif
#else
  constexpr bool k_sanitized = false;
#endif
  for (const char* const mark : {"guard_card", "run/card.sh", "run/vram_card.sh"})
    if (k_sanitized && file.script.find(mark) != std::string::npos) return true;
  return false;
}

class Cli : public testing::TestWithParam<fs::path> {};

TEST_P(Cli, PrintsWhatItShould) {
  const fs::path path = cases_folder() / GetParam();
  SCOPED_TRACE(path.string());
  std::string problem;
  std::optional<CaseFile> file = parse_case(read_text(path), problem);
  ASSERT_TRUE(file) << path.string() << ", " << problem;
  if (needs_the_guard(*file)) GTEST_SKIP() << "the guard is not loaded into a sanitized program";
  Outcome outcome = run(*file);
  outcome.out = without_tables_date(outcome.out);
  outcome.err = without_tables_date(outcome.err);
  if (outcome.code == k_no_terminal) GTEST_SKIP() << "no pseudo-terminal can be opened here";
  if (std::getenv("UPDATE_GOLDEN")) {
    file->out = outcome.out;
    file->err = outcome.err;
    file->exit_code = outcome.code;
    std::ofstream(path, std::ios::binary) << case_text(*file);
    GTEST_SKIP() << path << " rewritten";
  }
  EXPECT_EQ(outcome.code, file->exit_code);
  EXPECT_EQ(outcome.out, file->out);
  EXPECT_EQ(outcome.err, file->err);
}

INSTANTIATE_TEST_SUITE_P(All, Cli, testing::ValuesIn(cases()), case_name);

// What a hand wrote otherwise than an update does would show up in a later update's difference.
TEST(CliFiles, AreWrittenAsAnUpdateWritesThem) {
  for (const fs::path& name : cases()) {
    const std::string text = read_text(cases_folder() / name);
    std::string problem;
    const std::optional<CaseFile> file = parse_case(text, problem);
    ASSERT_TRUE(file) << name << ", " << problem;
    EXPECT_EQ(case_text(*file), text) << name;
  }
}

}  // namespace
}  // namespace cufit::cli_tests
