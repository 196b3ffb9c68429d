// SPDX-License-Identifier: Apache-2.0
#include "explain/source_line_map.h"

#include <gtest/gtest.h>

namespace cufit::explain {
namespace source_line_map_test {

TEST(Texts, FindsTheTextAndTheLineOfANumber) {
  Texts texts;
  texts.begin("a.log", 1);
  texts.begin("b.log", 11);
  EvidenceLine line{10, "", ""};
  texts.place(line);
  EXPECT_EQ(line.file, "a.log");
  EXPECT_EQ(line.line, 10u);
  line = {11, "", ""};
  texts.place(line);
  EXPECT_EQ(line.file, "b.log");
  EXPECT_EQ(line.line, 1u);
  line = {0, "/proc/version", ""};
  texts.place(line);
  EXPECT_EQ(line.file, "");
}

TEST(Texts, RenamesSourcesOfClaimedFactsOnly) {
  Texts texts;
  texts.begin("a.log", 1);
  texts.begin("b.log", 11);
  facts::Facts facts;
  facts.kernel.version = known<std::string>("470.57.02", SourceKind::claimed, "stdin:12");
  facts.system.kernel = known<std::string>("5.15", SourceKind::file, "/proc/stdin:12");
  texts.place(facts, "stdin");
  EXPECT_EQ(facts.kernel.version.source.detail, "b.log:2");
  EXPECT_EQ(facts.system.kernel.source.detail, "/proc/stdin:12");
  EXPECT_EQ(texts.place("stdin:3 says 1, stdin:13 says 2, stdin", "stdin"),
            "a.log:3 says 1, b.log:3 says 2, stdin");
}

TEST(Texts, CountsLinesOfEachTextAnewAndDecodesEachByItself) {
  Explainer explainer(knowledge::Knowledge::builtin());
  explainer.begin("first");
  explainer.add("no line break at the end");
  explainer.begin("second");
  explainer.add(std::string_view("\xFF\xFEX\0i\0d\0:\0 \0\x37\0\x39\0\n\0", 18));
  explainer.begin("third");
  explainer.add("x\nRuntimeError: The NVIDIA driver on your system is too old\n");
  const Explanation explanation = explainer.finish({});
  EXPECT_EQ(explanation.lines, 4u);
  EXPECT_EQ(explanation.files, 3u);
  bool found = false;
  for (const Cause& cause : explanation.causes) {
    for (const EvidenceLine& line : cause.evidence)
      found = found || (line.file == "third" && line.line == 2);
  }
  EXPECT_TRUE(found);
}

}  // namespace source_line_map_test
}  // namespace cufit::explain
