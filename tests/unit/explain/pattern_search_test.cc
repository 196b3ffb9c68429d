// SPDX-License-Identifier: Apache-2.0
#include "explain/pattern_search.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/format.h"
#include "explain/text_window.h"
#include "support/places.h"

namespace cufit::explain {
namespace pattern_search_test {

using knowledge::Knowledge;
using knowledge::PatternRow;
using Lines = std::vector<formats::TextLine>;

// What gen-tables makes of `too old .{0,20}driver`, of `version mismatch` and of `\bNCCL\w*`.
constexpr std::string_view k_pool =
    "too\\s+old\\s+.{0,20}driver"  // at 0, 25 bytes
    "0\ttoo old\n21\tdriver\n"     // 25, 20
    "version\\s+mismatch"          // 45, 18
    "version mismatch"             // 63, 16
    "\\bNCCL\\w*"                  // 79, 9
    "\bnccl";                      // 88, 5
constexpr PatternRow k_patterns[] = {
    {{0, 25}, {}, {25, 20}}, {{45, 18}, {63, 16}, {}}, {{79, 9}, {88, 5}, {}}};
constexpr knowledge::WordRow k_words[] = {{{19, 6}, 0, 1}, {{55, 8}, 1, 1}, {{89, 4}, 2, 1}};
constexpr uint32_t k_of_words[] = {0, 1, 2};
constexpr uint32_t k_first[] = {0}, k_second[] = {1}, k_last_two[] = {1, 2};

Knowledge small_world() {
  Knowledge out;
  out.pool = k_pool;
  out.patterns = k_patterns;
  out.words = k_words;
  out.word_patterns = k_of_words;
  return out;
}

std::string shown(const Lines& lines, std::vector<TextSearch::Group> groups) {
  const Knowledge world = small_world();
  const PatternSearch patterns(world);
  TextSearch search(patterns, lines);
  std::string out;
  for (const std::vector<Match>& matches : search.find(groups)) {
    for (const Match& match : matches) out += std::to_string(match.line) + ":" + match.text + "|";
    out += "/";
  }
  return out;
}

Lines lines_of(const std::string& text) { return formats::plain_text_lines(text); }

TEST(PatternSearch, FindsWhatATerminalHasWrapped) {
  EXPECT_EQ(shown(lines_of("a\nis too\nold a driver\n"), {k_first}), "2:is too|/");
  EXPECT_EQ(shown({{1, "Too \t Old  DRIVER"}}, {k_first}), "1:Too \t Old  DRIVER|/");
}

TEST(PatternSearch, KeepsTheOrderAndTheDistanceOfItsWords) {
  EXPECT_EQ(shown(lines_of("driver is too old"), {k_first}), "/");
  EXPECT_EQ(shown(lines_of("too old" + std::string(40, '.') + "driver"), {k_first}), "/");
}

TEST(PatternSearch, SeesAWordsEdge) {
  EXPECT_EQ(shown(lines_of("xnccl\nNCCL2 here\n"), {k_last_two}), "2:NCCL2 here|/");
}

TEST(PatternSearch, GivesEachGroupItsFirstPlaces) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "version mismatch " + std::to_string(i) + "\n\n\n\n";
  EXPECT_EQ(shown(lines_of(text), {k_second, k_last_two}),
            "1:version mismatch 0|5:version mismatch 1|9:version mismatch 2|/"
            "1:version mismatch 0|5:version mismatch 1|9:version mismatch 2|/");
}

TEST(PatternSearch, SeesOneMatchOnceFromTheLinesAroundIt) {
  EXPECT_EQ(shown(lines_of("version mismatch\nmismatch\nmismatch\n"), {k_second}),
            "1:version mismatch|/");
}

TEST(PatternSearch, ShortensALongLineAroundTheWord) {
  const std::string line = std::string(3000, 'a') + " version mismatch " + std::string(3000, 'b');
  const std::string out = shown(lines_of(line), {k_second});
  EXPECT_NE(out.find("version mismatch"), std::string::npos);
  EXPECT_LT(out.size(), 300u);
}

// What is found is the same on several threads: a text that is long enough for them.
TEST(PatternSearch, FindsTheSameOnSeveralThreads) {
  std::string text(5000, '\n');
  text += "too old a driver\nNCCL2 version mismatch\n";
  EXPECT_EQ(shown(lines_of(text), {k_first, k_second, k_last_two, k_first}),
            "5001:too old a driver|/5002:NCCL2 version mismatch|/5002:NCCL2 version mismatch|/"
            "5001:too old a driver|/");
}

TEST(Window, AsksForDigitsAndEdgesOfWords) {
  const Lines lines = lines_of("Tried to allocate  1234.50 GiB on model 7");
  const Window window(lines, 0, 0);
  EXPECT_TRUE(window.fits("0\tallocate \x01\x01\x01\x01\n"));
  EXPECT_FALSE(window.fits("0\tallocate \x01\x01\x01\x01\x01\n"));
  EXPECT_TRUE(window.fits("0\t\bon\b\n3\t\bmodel \x01\b\n"));
  EXPECT_FALSE(window.fits("0\t\bodel\b\n"));
  EXPECT_FALSE(window.fits("0\tmodel 7\x01\n"));  // past the end
  EXPECT_TRUE(window.fits("0\tnowhere\t\x01\x01.\x01\x01 gib\n"));
}

// A window in the memory of another one, of lines that other windows had, is what the lines say.
TEST(Window, IsTheSameWhateverItWasBefore) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "ab \n\tC"[random() % 6];
  const Lines lines = lines_of(text);
  WindowLines made;
  Window window;
  for (size_t i = 0; i < lines.size(); ++i) {
    window.move_to(lines, i, 0, made);
    std::string all, flat;
    std::vector<size_t> places;
    const size_t first = i - std::min<size_t>(i, 2);
    for (size_t k = first; k < std::min(i + 3, lines.size()); ++k)
      all += (k > first ? "\n" : "") + lower(lines[k].text);
    ASSERT_EQ(window.text(), all);
    for (size_t k = 0; k < all.size(); ++k) {
      const bool blank = all[k] == ' ' || all[k] == '\t' || all[k] == '\n';
      if (blank && !flat.empty() && flat.back() == ' ') continue;
      flat += blank ? ' ' : all[k];
      places.push_back(k);
    }
    for (size_t k = 0; k + 4 <= flat.size(); ++k) {
      const std::string part = flat.substr(k, 4);
      ASSERT_EQ(window.find_plain(part), places[flat.find(part)]) << i << " `" << part << '`';
      ASSERT_TRUE(window.fits("0\t" + part + "\n"));
    }
    ASSERT_EQ(window.find_plain("bab cc a"), flat.find("bab cc a") == flat.npos
                                                 ? std::string::npos
                                                 : places[flat.find("bab cc a")]);
  }
}

// Real and made texts of this tree, and the corpus where it is beside it.
std::vector<Lines> texts() {
  std::vector<Lines> out;
  const std::filesystem::path root = cufit::test::source_dir();
  for (const char* folder : {"fuzz/seeds/explain", "tests/texts", "../shared/corpus"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder, none)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::string text((std::istreambuf_iterator<char>(in)), {});
      if (entry.path().extension() == ".jsonl")  // their texts are one line of JSON each
        re2::RE2::GlobalReplace(&text, R"(\\n)", "\n");
      out.push_back(lines_of(text));
    }
  }
  return out;
}

// The searches without a regular expression stand for it: `plain` says the same, and `shape` and
// the word that leads to the pattern never hide a match.
TEST(PatternSearch, AsksForNothingThatAMatchOfTheRegularExpressionLacks) {
  const Knowledge& all = Knowledge::builtin();
  std::vector<std::string_view> word_of(all.patterns.size());
  for (const knowledge::WordRow& row : all.words) {
    for (uint32_t number : all.word_patterns.subspan(row.begin, row.count))
      word_of[number] = all.text(row.word);
  }
  std::vector<Window> windows;
  size_t step = 0;
  for (const Lines& lines : texts()) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (++step % 37 == 0) windows.emplace_back(lines, i, 0);
    }
  }
  ASSERT_GT(windows.size(), 5u);
  if (windows.size() > 120) windows.resize(120);
  size_t matches = 0;
  for (size_t number = 0; number < all.patterns.size(); ++number) {
    const std::string_view pattern = all.text(all.patterns[number].re);
    const std::string_view plain = all.text(all.patterns[number].plain);
    const std::string_view shape = all.text(all.patterns[number].shape);
    if (number % 5 != 0 && plain.empty()) continue;  // compiling all takes minutes under ASan
    re2::RE2::Options options(re2::RE2::Quiet);
    options.set_case_sensitive(false);
    const re2::RE2 re("(?m)" + std::string(pattern), options);
    ASSERT_TRUE(re.ok()) << pattern;
    ASSERT_FALSE(word_of[number].empty()) << pattern;
    const std::string_view words[] = {word_of[number]};
    const LiteralSearch word(words);
    for (const Window& window : windows) {
      const bool match = re2::RE2::PartialMatch(window.text(), re);
      if (!plain.empty()) {
        ASSERT_EQ(window.find_plain(plain) != std::string::npos, match) << pattern << "\n"
                                                                        << window.text();
      } else if (match) {
        ASSERT_TRUE(window.fits(shape)) << pattern << "\n" << shape << window.text();
      }
      if (!match) continue;
      ++matches;
      bool found = false;
      word.each(window.text(), [&](uint32_t, size_t) -> size_t { return found = true, 0; });
      ASSERT_TRUE(found) << pattern << "\n" << window.text();
    }
  }
  EXPECT_GT(matches, 20u);  // else the texts have nothing to do with the patterns
}

}  // namespace pattern_search_test
}  // namespace cufit::explain
