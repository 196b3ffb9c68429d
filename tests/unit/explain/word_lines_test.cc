// SPDX-License-Identifier: Apache-2.0
#include "explain/word_lines.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"
#include "support/places.h"

namespace cufit::explain {
namespace word_lines_test {

using Places = std::vector<size_t>;

TEST(WordLines, AreThoseWithAWordOfTheList) {
  const std::string_view lines[] = {"pip Install x", "nothing", "UV  add, uv\tadd", "pipx", ""};
  const std::string_view words[] = {"pip|uv add", "none", "", "pip"};
  const WordLines found(lines, words);
  EXPECT_EQ(found.of("pip|uv add"), (Places{0, 2, 3}));
  EXPECT_EQ(found.of("none"), Places());
  EXPECT_EQ(found.of("pip"), (Places{0, 3}));
  EXPECT_EQ(found.of(""), (Places{0, 1, 2, 3, 4}));  // nothing is known of the pattern
}

// RE2 takes the Kelvin sign for a "k": then every line is asked.
TEST(WordLines, AreAllWhereALetterHasAThirdCase) {
  const std::string_view lines[] = {
      "\xE2\x84\xAA"
      "8s",
      "x"};
  const std::string_view words[] = {"k8s"};
  EXPECT_EQ(WordLines(lines, words).of("k8s"), (Places{0, 1}));
}

// The words of a capture never hide a match.
TEST(WordLines, OfACaptureAreInEveryMatch) {
  std::vector<std::string> texts;
  const std::filesystem::path root = test::source_dir();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "tests/texts")) {
    if (!entry.is_regular_file() || entry.path().extension() != ".txt") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    texts.emplace_back((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }
  ASSERT_GT(texts.size(), 100u);
  std::vector<std::string_view> views(texts.begin(), texts.end()), words;
  const knowledge::Knowledge& all = knowledge::Knowledge::builtin();
  for (const knowledge::FindingTexts& finding : all.findings) {
    for (const knowledge::CaptureRow& row : finding.captures) words.push_back(row.words);
  }
  const WordLines places(views, words);
  size_t matches = 0, asked = 0, fewer = 0;
  for (const knowledge::FindingTexts& finding : all.findings) {
    for (const knowledge::CaptureRow& row : finding.captures) {
      if (row.words.empty()) continue;
      ++asked;
      re2::RE2::Options options(re2::RE2::Quiet);
      options.set_case_sensitive(false);
      const re2::RE2 pattern(re2::StringPiece(row.pattern.data(), row.pattern.size()), options);
      const Places found = places.of(row.words);
      fewer += found.size() < texts.size();
      for (size_t i = 0; i < texts.size(); ++i) {
        if (!re2::RE2::PartialMatch(texts[i], pattern)) continue;
        ++matches;
        EXPECT_TRUE(std::binary_search(found.begin(), found.end(), i)) << row.pattern;
      }
    }
  }
  EXPECT_GT(asked, 200u);
  EXPECT_EQ(fewer, asked);
  EXPECT_GT(matches, 200u);
}

}  // namespace word_lines_test
}  // namespace cufit::explain
