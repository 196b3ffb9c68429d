// SPDX-License-Identifier: Apache-2.0
#include "report/explain.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace explain_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

explain::Cause text_cause(const std::string& id) {
  explain::Cause out;
  out.id = id;
  out.finding.id = id;
  out.finding.variant = "text";
  return out;
}

explain::Explanation sample() {
  explain::Explanation out;
  out.lines = 3;
  out.files = 1;
  explain::Cause cause = text_cause("driver_too_old");
  cause.would_decide = true;
  cause.evidence.push_back({2, "RuntimeError: \x1b[31mtoo old", "CUDA 11.4", "run.log"});
  cause.evidence.push_back({0, "/sys/module/nvidia/version", "470.57.02"});
  out.causes.push_back(cause);
  out.ignored.push_back({"app_kernel_fault", "no_such_clue", {3, "all is well", "", "run.log"}});
  return out;
}

TEST(ExplainJson, HoldsTheSchemasMembers) {
  const explain::Explanation explanation = sample();
  const auto json = nlohmann::json::parse(explain_json({explanation, tables()}));
  EXPECT_EQ(json["schema"], "cufit.explain/1");
  const auto& cause = json["causes"][0];
  EXPECT_EQ(cause["id"], "driver_too_old");
  EXPECT_EQ(cause["confidence"], "possible");
  EXPECT_EQ(cause["evidence"][0]["line"], 2);
  EXPECT_EQ(cause["evidence"][0]["fact"], "CUDA 11.4");
  EXPECT_TRUE(cause["would_decide"].is_string());
  EXPECT_EQ(json["ignored"][0]["contradicted_by"], "no_such_clue (line 3 of run.log: all is well)");
  EXPECT_EQ(json["facts"]["schema"], "cufit.facts/1");
}

TEST(ExplainJson, NamesThePackageInCommandsAndQuestions) {
  explain::Explanation explanation;
  explain::Cause cause = text_cause("ext_abi_mismatch");
  explanation.causes.push_back(cause);
  cause.finding.args = {{"PACKAGE", "flash-attn"}, {"REQUIREMENT", "flash-attn==2.5.8"}};
  explanation.causes.push_back(cause);
  cause = text_cause("ext_binary_missing");
  cause.would_decide = true;
  cause.finding.args = {{"PACKAGE", "x1"}, {"REQUIREMENT", "x1==2.0"}, {"MODULE", "x1_module"}};
  explanation.causes.push_back(cause);
  const auto json = nlohmann::json::parse(explain_json({explanation, tables()}));
  const auto next = [&](size_t i) { return json["causes"][i]["next"].get<std::string>(); };
  EXPECT_TRUE(contains(next(0), "--no-binary PACKAGE PACKAGE`"));
  EXPECT_TRUE(contains(next(1), "uninstall -y flash-attn &&")) << next(1);
  EXPECT_TRUE(contains(next(1), "--no-binary flash-attn flash-attn==2.5.8`")) << next(1);
  EXPECT_TRUE(contains(next(2), "--upgrade x1`")) << next(2);
  EXPECT_TRUE(
      contains(json["causes"][2]["would_decide"].get<std::string>(), "find_spec(\"x1_module\")"));
  for (const char* lang : {"en", "zh"})
    EXPECT_FALSE(contains(cause_text(explanation.causes[1], "next", lang, tables()), "PACKAGE"));
}

TEST(ExplainText, FactsAreInTheReadersLanguage) {
  const auto zh = [](const char* fact) { return fact_text(fact, "zh", tables()); };
  EXPECT_EQ(zh("asked for 1.0 GiB"), "申请 1.0 GiB");
  EXPECT_EQ(zh("asked for 1.0 GiB, the card has 2.0 GiB"), "申请 1.0 GiB，而显卡共 2.0 GiB");
  EXPECT_EQ(zh("reserved 3.0 GiB - allocated 1.0 GiB = 2.0 GiB unused, 512 MiB were asked for"),
            "预留 3.0 GiB - 张量占用 1.0 GiB = 未用 2.0 GiB，申请 512 MiB");
  EXPECT_EQ(zh("CUDA 11.4"), "CUDA 11.4");
  EXPECT_EQ(zh(""), "");
  EXPECT_EQ(fact_text("asked for 1.0 GiB", "en", tables()), "asked for 1.0 GiB");
}

// The English words are those of explain/: a fact of a real message must find its Chinese.
TEST(ExplainText, EveryFactOfAnOutOfMemoryMessageHasItsChinese) {
  const char* text =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.70 "
      "GiB total capacity; 18.00 GiB already allocated; 5.00 MiB free; 21.71 GiB reserved in total "
      "by PyTorch)";
  explain::Explainer explainer(tables());
  explainer.add(text);
  size_t facts = 0;
  for (const explain::Cause& cause : explainer.finish({}).causes) {
    for (const explain::EvidenceLine& line : cause.evidence) {
      if (line.fact.empty()) continue;
      EXPECT_NE(fact_text(line.fact, "zh", tables()), line.fact);
      ++facts;
    }
  }
  EXPECT_GT(facts, 1u);
}

TEST(ExplainJson, HasNoCauseWhenNothingIsKnown) {
  const auto json = nlohmann::json::parse(explain_json({explain::Explanation(), tables()}));
  EXPECT_TRUE(json["causes"].is_array() && json["causes"].empty());
  EXPECT_TRUE(json["ignored"].is_array() && json["ignored"].empty());
}

TEST(ExplainText, ShowsNoControlCharacterOfTheText) {
  const explain::Explanation explanation = sample();
  for (const char* lang : {"en", "zh"}) {
    const std::string text = explain_text({explanation, tables()}, {lang, false, 100, true});
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_NE(text.find("run.log:2"), std::string::npos) << text;
    EXPECT_NE(text.find("`/sys/module/nvidia/version`"), std::string::npos) << text;
  }
}

// Only what must stay whole to be copied may be wider: a command or a `quoted` span.
TEST(ExplainText, KeepsToTheWidth) {
  explain::Explanation explanation = sample();
  explanation.causes[0].evidence[0].text = std::string(300, 'x') + " " + std::string(90, 'y');
  for (const char* lang : {"en", "zh"}) {
    const std::string text = explain_text({explanation, tables()}, {lang, false, 40, true});
    for (std::string_view line : split_lines(text)) {
      if (contains(line, "`") || starts_with(line, "      pip ")) continue;
      EXPECT_LE(columns(line), 40) << line;
    }
  }
}

TEST(ExplainText, DropsSentencesThatOnlyACheckCouldFill) {
  for (const knowledge::FindingTexts& finding : tables().findings) {
    const explain::Cause cause = text_cause(std::string(finding.id));
    for (const char* part : {"title", "why", "next", "rule", "decide"}) {
      for (const char* lang : {"en", "zh"}) {
        const std::string text = cause_text(cause, part, lang, tables());
        for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
          const size_t end = text.find('}', at);
          const bool name =
              end != text.npos && end > at + 1 &&
              text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at + 1) == end;
          EXPECT_FALSE(name) << finding.id << " " << part << " " << lang << ": " << text;
        }
      }
    }
  }
}

TEST(CausesPage, NamesEveryLayerInBothLanguages) {
  for (const knowledge::FindingTexts& finding : tables().findings) {
    if (finding.signs.empty()) continue;
    for (const char* lang : {"en", "zh"})
      EXPECT_FALSE(tables().message("explain.layer." + std::string(finding.category), lang).empty())
          << finding.category;
  }
  EXPECT_NE(causes_page(tables()).find("### `driver_too_old`"), std::string::npos);
}

}  // namespace explain_test
}  // namespace cufit::report
