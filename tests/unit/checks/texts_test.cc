// SPDX-License-Identifier: Apache-2.0
// Checks and texts belong together: every id that a source file names has texts, and no text waits
// for a check that does not exist. Reads src/checks/*.cc, because an id that no test machine
// triggers would otherwise go unseen.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/format.h"
#include "knowledge/knowledge.h"
#include "support/places.h"

namespace cufit::checks {
namespace texts_test {

using knowledge::Knowledge;

// A source file without its comments, which quote words as well.
std::string code_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string code;
  for (std::string line; std::getline(in, line);) code += line.substr(0, line.find("//")) + "\n";
  return code;
}

std::string sources() {
  std::string all;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(cufit::test::source_dir() + "/src/checks"))
    if (entry.path().extension() == ".cc") all += code_of(entry.path());
  return all;
}

// "..." literals without escapes, one set of the words in them.
std::set<std::string> quoted_words(const std::string& text) {
  std::set<std::string> words;
  for (size_t open = text.find('"'); open != std::string::npos;) {
    size_t close = text.find_first_of("\"\n", open + 1);
    if (close == std::string::npos) break;
    if (text[close] == '"')
      for (std::string_view word :
           split(std::string_view(text).substr(open + 1, close - open - 1), ' '))
        words.insert(std::string(word));
    open = text.find('"', close + 1);
  }
  return words;
}

std::set<std::string> made_ids(const std::string& text) {
  std::set<std::string> ids;
  for (std::string_view call : {"finding(\"", "cannot_tell(\"", "about(\""}) {
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
      size_t from = at + call.size();
      ids.insert(text.substr(from, text.find('"', from) - from));
    }
  }
  return ids;
}

TEST(Texts, EveryIdThatACheckMakesHasTexts) {
  std::set<std::string> ids = made_ids(sources());
  EXPECT_GE(ids.size(), 40u);
  for (const std::string& id : ids) EXPECT_NE(Knowledge::builtin().find_texts(id), nullptr) << id;
}

TEST(Texts, NoFindingWaitsForACheck) {
  std::set<std::string> words = quoted_words(sources());
  // `cufit lock --check` and `env check` judge what no check of doctor sees.
  for (const char* file :
       {"/src/resolve/lock/lock_check.cc", "/src/resolve/lock/environment_check.cc",
        "/src/commands/env/env_check.cc", "/src/commands/lock/lock_check.cc",
        "/src/explain/program_step.cc"})
    words.merge(quoted_words(code_of(cufit::test::source_dir() + file)));
  // Images and manifests are judged by what they are to run on.
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(cufit::test::source_dir() + "/src/resolve"))
    if (entry.path().extension() == ".cc") words.merge(quoted_words(code_of(entry.path())));
  for (const knowledge::XidRow& row : Knowledge::builtin().xids)
    words.insert(std::string(row.finding));
  for (const knowledge::FindingTexts& texts : Knowledge::builtin().findings) {
    const std::string id(texts.id);
    EXPECT_TRUE(words.count(id) || !texts.signs.empty()) << id;  // a check or explain names it
  }
}

TEST(Texts, EveryRootCauseRuleNamesFindings) {
  std::string text = code_of(cufit::test::source_dir() + "/src/checks/root_cause.cc");
  size_t begin = text.find("#define CUFIT_ABOVE_KERNEL"),
         end = text.find("#undef CUFIT_ABOVE_KERNEL");
  ASSERT_NE(end, std::string::npos);
  for (std::string word : quoted_words(text.substr(begin, end - begin))) {
    if (ends_with(word, "?")) word.pop_back();
    if (!word.empty()) {
      EXPECT_NE(Knowledge::builtin().find_texts(word), nullptr) << word;
    }
  }
}

TEST(Texts, NoLinkTextWaitsForItsCase) {
  std::set<std::string> words = quoted_words(sources());
  for (const knowledge::TextPair& message : Knowledge::builtin().messages) {
    std::string key(message.key);
    bool of_checks = starts_with(key, "link.") || starts_with(key, "ability.") ||
                     starts_with(key, "host_limits.");
    if (!of_checks) continue;
    std::string last = key.substr(key.rfind('.') + 1);
    bool whole = words.count(key) > 0;
    EXPECT_TRUE(whole || words.count(last) > 0) << key;
  }
}

}  // namespace texts_test
}  // namespace cufit::checks
