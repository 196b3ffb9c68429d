// SPDX-License-Identifier: Apache-2.0
#include "explain/intake.h"

#include <gtest/gtest.h>

#include <string>

namespace cufit::explain {
namespace intake_test {

const std::vector<std::string_view>& words() {
  static const std::vector<std::string_view> all = {"needle", "other word"};
  return all;
}

std::vector<formats::TextLine> read(const std::string& text, size_t piece = SIZE_MAX,
                                    uint64_t* lines = nullptr) {
  const LiteralSearch search(words());
  Intake intake(search);
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size()))
    intake.add(std::string_view(text).substr(at, piece));
  auto out = intake.finish();
  if (lines) *lines = intake.lines();
  return out;
}

std::string shown(const std::vector<formats::TextLine>& lines) {
  std::string out;
  for (const formats::TextLine& line : lines)
    out += std::to_string(line.number) + ":" + line.text + "|";
  return out;
}

TEST(Intake, KeepsAShortTextWhole) {
  EXPECT_EQ(shown(read("one\ntwo\r\nthree")), "1:one|2:two|3:three|");
  EXPECT_EQ(shown(read("one\n\n")), "1:one|2:|");
  EXPECT_EQ(shown(read("")), "");
}

TEST(Intake, KeepsWhatAProgressBarDrewOver) {
  EXPECT_EQ(shown(read("10%\r20%\rRuntimeError: x\nend\n")),
            "1:10%|1:20%|1:RuntimeError: x|2:end|");
}

TEST(Intake, DropsColours) {
  EXPECT_EQ(shown(read("\x1b[31mred\x1b[0m\n\x1b]0;title\aplain\n")), "1:red|2:plain|");
}

TEST(Intake, ReadsUtf16WithAndWithoutMark) {
  std::string with_mark = "\xFF\xFE", big;
  for (char c : std::string("needle in a log\nsecond\n")) {
    with_mark += c, with_mark += '\0';
    big += '\0', big += c;
  }
  EXPECT_EQ(shown(read(with_mark)), "1:needle in a log|2:second|");
  EXPECT_EQ(shown(read(big)), "1:needle in a log|2:second|");
  EXPECT_EQ(shown(read(with_mark, 3)), "1:needle in a log|2:second|");
}

TEST(Intake, TakesPiecesOfAnySize) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\x1b[1mline\x1b[0m " + std::to_string(i) + "\r\n";
  const std::string whole = shown(read(text));
  for (size_t piece : {1, 2, 7, 1000}) EXPECT_EQ(shown(read(text, piece)), whole) << piece;
}

TEST(Intake, ThinsALongTextButKeepsEveryPlaceThatMatters) {
  std::string text;
  uint64_t needle = 0, count = 0;
  while (text.size() < (6u << 20)) {
    ++count;
    if (!needle && text.size() > (3u << 20)) {
      needle = count;
      text += "here is the Needle\n";
    } else {
      text += "step " + std::to_string(count) + " loss 0.123 of a run that goes on\n";
    }
  }
  uint64_t lines = 0;
  const auto kept = read(text, 100000, &lines);
  EXPECT_EQ(lines, count);
  EXPECT_LT(kept.size(), count / 2);
  auto text_of = [&](uint64_t number) {
    for (const formats::TextLine& line : kept)
      if (line.number == number) return line.text;
    return std::string();
  };
  EXPECT_EQ(text_of(needle), "here is the Needle");
  for (uint64_t around : {needle - 6, needle + 12})
    EXPECT_EQ(text_of(around),
              "step " + std::to_string(around) + " loss 0.123 of a run that goes on");
  EXPECT_EQ(text_of(1), "step 1 loss 0.123 of a run that goes on");
  EXPECT_EQ(text_of(count), "step " + std::to_string(count) + " loss 0.123 of a run that goes on");
  for (size_t i = 1; i < kept.size(); ++i) ASSERT_LT(kept[i - 1].number, kept[i].number);
}

TEST(Intake, StaysSmallWhenEveryLineMatches) {
  const LiteralSearch search(words());
  Intake intake(search);
  std::string block;
  while (block.size() < (1u << 20)) block += "a needle and an other word in every line\n";
  for (int i = 0; i < 40; ++i) intake.add(block);
  size_t bytes = 0;
  for (const formats::TextLine& line : intake.finish()) bytes += line.text.size();
  EXPECT_LT(bytes, 8u << 20);
}

TEST(Intake, CutsALineWithoutEnd) {
  const std::string text(3u << 20, 'x');
  uint64_t lines = 0;
  const auto kept = read(text + " needle\nlast\n", 1 << 16, &lines);
  EXPECT_EQ(lines, 2u);
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.back().text, "last");
  for (const formats::TextLine& line : kept) EXPECT_LE(line.text.size(), 16384u);
}

TEST(Intake, FindsAPlaceAnywhereInALineWithoutEnd) {
  for (size_t at : {1500u << 10, 2500u << 10, 4000u << 10}) {
    std::string text(5u << 20, 'x');
    for (size_t i = 0; i < text.size(); i += 50) text[i] = ' ';
    text.replace(at, 8, " needle ");
    size_t found = 0;
    for (const formats::TextLine& line : read(text, 1 << 16))
      found += line.text.find("needle") != std::string::npos;
    EXPECT_EQ(found, 1u) << at;
  }
}

TEST(Intake, ReadsNothingFromWhatIsNoText) {
  for (size_t size : {10u << 10, 3u << 20}) {
    std::string bytes;
    for (uint32_t state = 1; bytes.size() < size;) {
      state = state * 1664525 + 1013904223;
      bytes += static_cast<char>(state >> 24);
    }
    EXPECT_TRUE(read(bytes + " needle ").empty()) << size;
  }
}

}  // namespace intake_test
}  // namespace cufit::explain
