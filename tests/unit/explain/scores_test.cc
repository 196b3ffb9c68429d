// SPDX-License-Identifier: Apache-2.0
#include "explain/scores.h"

#include <gtest/gtest.h>

namespace cufit::explain {
namespace scores_test {

using knowledge::FindingTexts;
using knowledge::Knowledge;
using knowledge::SignRow;
using knowledge::TextPair;

constexpr TextPair k_texts[] = {{"decide", "ask", "问"}};
constexpr std::string_view k_against[] = {"wsl"}, k_explains[] = {"echo"};
constexpr SignRow k_signs[] = {
    {{}, {}, 60, false}, {{}, {}, 50, false}, {{}, {}, 90, true}, {{}, {}, 10, false}};

// Four causes: the first explains the second, the third is ruled out under WSL.
const Knowledge& world() {
  static const FindingTexts findings[] = {
      {"root", "", "", k_texts, k_signs, {}, k_explains, ""},
      {"echo", "", "", k_texts, k_signs, {}, {}, ""},
      {"native", "", "", k_texts, k_signs, k_against, {}, ""},
      {"other", "", "", k_texts, k_signs, {}, {}, ""},
  };
  static const Knowledge out = [] {
    Knowledge tables;
    tables.findings = findings;
    return tables;
  }();
  return out;
}

// Signs of k_signs by number, for each cause.
TextEvidence said(std::vector<std::vector<size_t>> signs) {
  TextEvidence out;
  uint64_t line = 0;
  for (const std::vector<size_t>& of_cause : signs) {
    auto& hits = out.signs.emplace_back();
    for (size_t sign : of_cause) hits.push_back({&k_signs[sign], {{++line, "text", "", ""}}});
  }
  out.signs.resize(world().findings.size());
  return out;
}

std::string shown(const Ranking& ranking) {
  std::string out;
  for (const Cause& cause : ranking.causes) {
    out += cause.id + ":" + to_string(cause.confidence) + ":" +
           std::to_string(static_cast<int>(cause.score * 100 + 0.5)) + " ";
  }
  for (const Ignored& ignored : ranking.ignored) out += "-" + ignored.id + ":" + ignored.clue;
  return out;
}

std::string ranked(const TextEvidence& evidence, std::vector<checks::Finding> findings = {}) {
  return shown(rank_causes(world(), evidence, findings, true));
}

checks::Finding found(const std::string& id, checks::Severity severity,
                      const std::string& kind = "claimed", const std::string& value = "470.57") {
  checks::Finding out;
  out.id = id;
  out.severity = severity;
  out.evidence.push_back({kind, "log.txt:7", value});
  return out;
}

TEST(Scores, AddUpWithoutPassingOne) {
  EXPECT_EQ(ranked(said({{}, {0}, {}, {0, 1}})), "other:likely:80 echo:likely:60 ");
}

TEST(Scores, NameNothingForAWeakHint) {
  EXPECT_EQ(ranked(said({{3}, {}, {}, {}})), "");
  EXPECT_EQ(ranked(said({{}, {}, {}, {1}})), "other:possible:50 ");
}

TEST(Scores, PutWhatIsCertainFirst) {
  EXPECT_EQ(ranked(said({{}, {0, 1}, {}, {2}})), "other:certain:90 echo:likely:80 ");
}

TEST(Scores, WhatIsOnlyToldProvesNothing) {
  TextEvidence evidence = said({{}, {}, {}, {2}});
  for (SignHit& hit : evidence.signs[3]) hit.printed = false;
  EXPECT_EQ(ranked(evidence), "other:likely:90 ");
}

TEST(Scores, PushAnEchoDownWhereItsCauseIsLikely) {
  EXPECT_EQ(ranked(said({{0}, {0, 1}, {}, {}})), "root:likely:60 echo:possible:32 ");
  // A cause that is hardly there explains nothing.
  EXPECT_EQ(ranked(said({{3}, {0}, {}, {}})), "echo:likely:60 ");
}

TEST(Scores, DropWhatTheTextRulesOutAndSaySo) {
  TextEvidence evidence = said({{}, {}, {0}, {1}});
  evidence.clues["wsl"] = {{4, "microsoft-standard", "", ""}};
  const Ranking ranking = rank_causes(world(), evidence, {}, true);
  EXPECT_EQ(shown(ranking), "other:possible:50 -native:wsl");
  EXPECT_EQ(ranking.ignored[0].contradiction.line, 4u);
}

TEST(Scores, BecomeCertainOnlyWhereFactsAndTheFailureAgree) {
  const auto error = found("other", checks::Severity::error);
  EXPECT_EQ(ranked(said({{}, {}, {}, {}}), {error}), "other:likely:60 ");
  EXPECT_EQ(ranked(said({{}, {}, {}, {1}}), {error}), "other:certain:93 ");
  // What cufit filled in itself proves nothing.
  EXPECT_EQ(ranked(said({{}, {}, {}, {1}}), {found("other", checks::Severity::error, "assumed")}),
            "other:likely:93 ");
  EXPECT_EQ(ranked(said({{}, {}, {}, {}}), {found("other", checks::Severity::warning)}),
            "other:possible:30 ");
}

TEST(Scores, TakeNoAbsenceFromAText) {
  const auto absent = found("other", checks::Severity::error, "claimed", "not_present");
  EXPECT_EQ(ranked(said({}), {absent}), "");
  const std::vector<checks::Finding> findings = {absent};
  EXPECT_EQ(shown(rank_causes(world(), said({}), findings, false)), "other:likely:60 ");
}

TEST(Scores, ShowTheStrongestLineFirstAndTheCheckedLineByItsNumber) {
  const std::vector<checks::Finding> findings = {found("other", checks::Severity::error)};
  const Ranking ranking = rank_causes(world(), said({{}, {}, {}, {1, 0}}), findings, true);
  const std::vector<EvidenceLine>& lines = ranking.causes.at(0).evidence;
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].line, 7u);
  EXPECT_EQ(lines[0].fact, "470.57");
  EXPECT_EQ(lines[1].line, 2u);
  EXPECT_EQ(lines[2].line, 1u);
}

TEST(Scores, AskForWhatIsNotCertainAndItsRivals) {
  const Ranking ranking = rank_causes(world(), said({{}, {0}, {1}, {3, 3}}), {}, true);
  ASSERT_EQ(ranking.causes.size(), 3u);
  EXPECT_TRUE(ranking.causes[0].would_decide);
  EXPECT_TRUE(ranking.causes[1].would_decide);
  EXPECT_FALSE(ranking.causes[2].would_decide);
  EXPECT_FALSE(rank_causes(world(), said({{}, {2}}), {}, true).causes.at(0).would_decide);
}

// What numbers say against a cause halves what words say for it, not its signs.
TEST(Scores, WeighWordsLessWhereTheTextDoubtsThem) {
  static constexpr std::string_view k_others[] = {"outside", "!free"}, k_killer[] = {"killer"};
  static constexpr std::span<const std::string_view> k_doubted[] = {k_others},
                                                     k_sure[] = {k_killer};
  static const FindingTexts findings[] = {
      {"own", "", "", k_texts, {}, {}, {}, "", k_doubted, {}},
      {"host", "", "", k_texts, {}, {}, {}, "", {}, k_sure},
      {"third", "", "", k_texts, {}, {}, {}, ""},
  };
  Knowledge tables;
  tables.findings = findings;
  Votes votes;
  for (const auto& [cause, share] : {std::pair{"own", 0.5}, {"third", 0.3}, {"host", 0.2}})
    votes.causes.push_back({cause, share, true, 1.0, share});
  const auto first = [&](std::vector<std::string_view> clues) {
    TextEvidence evidence;
    evidence.signs.resize(3);
    for (std::string_view clue : clues) evidence.clues[clue] = {};
    return rank_causes(tables, evidence, {}, true, votes).causes.at(0).id;
  };
  EXPECT_EQ(first({}), "own");
  EXPECT_EQ(first({"outside"}), "third");
  EXPECT_EQ(first({"outside", "free"}), "own");
  EXPECT_EQ(first({"killer"}), "host");
}

}  // namespace scores_test
}  // namespace cufit::explain
