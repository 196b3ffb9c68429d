// SPDX-License-Identifier: Apache-2.0
#include "explain/captures.h"

#include <gtest/gtest.h>

#include "explain/captured_args.h"

namespace cufit::explain {
namespace captures_test {

using Args = std::map<std::string, std::string>;

constexpr knowledge::TextPair k_texts[] = {{"title", "t", "t"},
                                           {"next.text", "plain", "plain"},
                                           {"next.text.gcc", "gcc-{gcc}", "gcc-{gcc}"},
                                           {"next.text.both", "{gcc} {other}", "{gcc} {other}"},
                                           {"next.text.clue", "clue", "clue"}};
constexpr std::string_view k_clue[] = {"dnf"}, k_no_clue[] = {"!dnf", "apt"};
constexpr knowledge::CaptureRow k_rows[] = {
    {"later\\s+than\\s+(?P<gcc>\\S+)\\s+are", {}, "both"},  // asks for more than the text gives
    {"later\\s+than\\s+(?P<gcc>\\S+)\\s+are", {}, "gcc"},
    {"", k_clue, "clue"},
    {"", k_no_clue, "missing_text"}};

checks::Finding filled(std::string_view text, std::vector<std::string_view> clues = {},
                       const char* variant = "text") {
  const knowledge::FindingTexts findings[] = {
      {"x", "build", "none", k_texts, {}, {}, {}, "", {}, {}, k_rows}};
  knowledge::Knowledge world = knowledge::Knowledge::builtin();
  world.findings = findings;
  const std::vector<formats::TextLine> lines = formats::plain_text_lines(text);
  std::vector<Cause> causes(1);
  causes[0].id = causes[0].finding.id = "x";
  causes[0].finding.variant = variant;
  fill_captures(causes, lines, clues, {}, world);
  return causes[0].finding;
}

TEST(Captures, FillArgumentsAndChooseAVariantThatIsFilled) {
  const checks::Finding found = filled("gcc versions later than 11 are not supported");
  EXPECT_EQ(found.args.at("gcc"), "11");
  EXPECT_EQ(found.variant, "text.gcc");
  EXPECT_EQ(filled("nothing of it").variant, "text");
}

TEST(Captures, AMessageMayGoOverTwoLines) {
  EXPECT_EQ(filled("versions later\n  than 11\n are").variant, "text");
  EXPECT_EQ(filled("versions later\n   than 11 are not").variant, "text.gcc");
}

TEST(Captures, CluesChooseWhereNoPatternIs) {
  EXPECT_EQ(filled("x", {"dnf"}).variant, "text.clue");
  EXPECT_EQ(filled("x", {"apt"}).variant, "text");                      // its variant has no text
  EXPECT_EQ(filled("later than 11 are", {"dnf"}).variant, "text.gcc");  // rows go in order
}

TEST(Captures, WhatAShellWouldRunIsNoValue) {
  for (const char* bad : {"$(rm)", "`id`", "11;ls", "-rf", "a|b", "\"x\""})
    EXPECT_EQ(filled(std::string("later than ") + bad + " are").variant, "text") << bad;
}

TEST(Captures, AChecksOwnVariantIsKeptWithoutATextForBoth) {
  EXPECT_EQ(filled("later than 11 are", {}, "old").variant, "old");
}

Args with(Args args, const facts::Facts& facts = {}) {
  add_captured_args(args, facts, knowledge::Knowledge::builtin());
  return args;
}

TEST(CapturedArgs, FollowFromNumbers) {
  EXPECT_EQ(with({{"free", "10.21"}, {"whole", "23.65"}}).at("share"), "0.42");
  EXPECT_EQ(with({{"free", "23.00"}, {"whole", "23.65"}}).at("share"), "0.96");
  EXPECT_EQ(with({{"free", "1.20"}, {"whole", "23.65"}}).at("share"), "0.04");
  EXPECT_EQ(with({{"free", "0.1"}, {"whole", "23.65"}}).count("share"), 0u);
  EXPECT_EQ(with({{"free", "30"}, {"whole", "20"}}).count("share"), 0u);
  EXPECT_EQ(with({{"gcc_below", "13"}}).at("gcc"), "12");
  EXPECT_EQ(with({{"sm", "compute_120"}}).at("toolkit"), "12.8");
  EXPECT_EQ(with({{"sm", "8.9"}}).at("toolkit"), "11.8");
  EXPECT_EQ(with({{"sm", "sm_35"}}).at("last_toolkit"), "11.8");
  EXPECT_EQ(with({{"sm", "sm_35"}}).count("toolkit"), 0u);
  EXPECT_EQ(with({{"sm", "compute_999"}}).count("toolkit"), 0u);
  EXPECT_EQ(with({{"cpython", "310"}}).at("python"), "3.10");
  EXPECT_EQ(with({{"xformers_torch", "2.1.2"}}).at("xformers"), "0.0.23.post1");
}

TEST(CapturedArgs, ThePythonIsOneThatTheReleaseHas) {
  EXPECT_EQ(with({{"wanted_torch", "2.1.2"}}).at("python"), "3.11");
  EXPECT_EQ(with({{"wanted_torch", "1.13.1+cu117"}}).at("python"), "3.10");
  EXPECT_EQ(with({{"wanted_torch", "9.9.9"}}).count("python"), 0u);
  facts::Facts facts;
  facts.envs.resize(1);
  facts.envs[0].python = known<std::string>("3.11.2", SourceKind::claimed, "t:1");
  EXPECT_EQ(with({{"wanted_torch", "2.1.2"}}, facts).count("python"), 0u);
  facts.envs[0].python = known<std::string>("3.13.1", SourceKind::claimed, "t:1");
  EXPECT_EQ(with({{"wanted_torch", "2.1.2"}}, facts).at("have_python"), "3.13");
}

}  // namespace captures_test
}  // namespace cufit::explain
