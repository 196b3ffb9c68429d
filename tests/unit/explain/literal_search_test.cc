// SPDX-License-Identifier: Apache-2.0
#include "explain/literal_search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace cufit::explain {
namespace literal_search_test {

using Hits = std::vector<std::pair<std::string, size_t>>;

Hits hits(const std::vector<std::string_view>& literals, std::string_view text) {
  LiteralSearch search(literals);
  Hits out;
  search.each(text, [&](uint32_t literal, size_t at) -> size_t {
    out.emplace_back(literals[literal], at);
    return 0;
  });
  return out;
}

TEST(LiteralSearch, FindsEveryOccurrenceInAnyCase) {
  EXPECT_EQ(hits({"error 804", "804:"}, "Error 804: ERROR 804"),
            (Hits{{"error 804", 0}, {"804:", 6}, {"error 804", 11}}));
}

TEST(LiteralSearch, TakesAnyWhiteSpaceForABlank) {
  EXPECT_EQ(hits({"too old"}, "is too\nold, too\told"), (Hits{{"too old", 3}, {"too old", 12}}));
}

TEST(LiteralSearch, FindsAtBothEndsAndNothingInShortTexts) {
  EXPECT_EQ(hits({"abcd"}, "abcd"), (Hits{{"abcd", 0}}));
  EXPECT_EQ(hits({"abcd"}, "xabcd"), (Hits{{"abcd", 1}}));
  EXPECT_EQ(hits({"abcde"}, "abcd"), Hits{});
  EXPECT_EQ(hits({"abc"}, "abc"), (Hits{{"abc", 0}}));
  EXPECT_EQ(hits({"abc"}, "ab"), Hits{});
  EXPECT_EQ(hits({"abcd"}, ""), Hits{});
}

TEST(LiteralSearch, GoesOnWhereItIsTold) {
  const std::vector<std::string_view> literals = {"error"};
  LiteralSearch search(literals);
  std::vector<size_t> places;
  const std::string text = "error error\nerror error\nerror";
  search.each(text, [&](uint32_t, size_t at) -> size_t {
    places.push_back(at);
    return std::min(text.find('\n', at), text.size() - 1) + 1;
  });
  EXPECT_EQ(places, (std::vector<size_t>{0, 12, 24}));
}

TEST(LiteralSearch, AgreesWithASearchOneByOne) {
  std::mt19937 random(7);
  const std::string letters = "ab \n\t\vcBC@`";  // '@' and '`' differ as two cases of a letter do
  std::vector<std::string> owned;
  for (int i = 0; i < 60; ++i) {
    std::string word;
    for (size_t k = 3 + random() % 6; k > 0; --k) word += "ab c`"[random() % 5];
    owned.push_back(word);
  }
  std::sort(owned.begin(), owned.end());
  owned.erase(std::unique(owned.begin(), owned.end()), owned.end());
  const std::vector<std::string_view> literals(owned.begin(), owned.end());
  std::string text;
  for (int i = 0; i < 20000; ++i) text += letters[random() % letters.size()];
  std::string folded = text;
  for (char& c : folded) {
    if (c == '\n' || c == '\t' || c == '\v') c = ' ';
    if (c == 'B' || c == 'C') c = static_cast<char>(c - 'A' + 'a');
  }
  Hits expected;
  for (std::string_view literal : literals)
    for (size_t at = folded.find(literal); at != std::string::npos;
         at = folded.find(literal, at + 1))
      expected.emplace_back(literal, at);
  Hits found = hits(literals, text);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

}  // namespace literal_search_test
}  // namespace cufit::explain
