// SPDX-License-Identifier: Apache-2.0
#include "formats/system/yaml_tree.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace yaml_tree_test {

YamlText read(const std::string& text) { return *parse_yaml(text, "a.yaml"); }

TEST(YamlTree, DocumentsKeepTheirLines) {
  const YamlText text = read("# a comment\n---\na: 1\n---\n\nb:\n- c: \"2\"\n...\n");
  ASSERT_EQ(text.documents.size(), 2u);
  EXPECT_EQ(text.documents[0].line_of("a"), 3u);
  EXPECT_EQ(text.documents[1].line_of("b"), 6u);
  const YamlNode& entry = text.documents[1].at("b").items[0];
  EXPECT_EQ(entry.line, 7u);
  EXPECT_EQ(entry.at("c").text, "2");
  EXPECT_TRUE(entry.at("c").quoted);
  EXPECT_FALSE(text.documents[0].at("a").quoted);
  EXPECT_EQ(read("%YAML 1.1\n--- {a: b}\n").documents[0].at("a").text, "b");
  EXPECT_TRUE(read("").documents.empty());
  EXPECT_TRUE(read("# nothing\n---\n").documents.empty());
}

TEST(YamlTree, AliasesAndMergedMaps) {
  const YamlText text = read("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\nz: *x\n");
  const YamlNode& root = text.documents[0];
  EXPECT_EQ(root.at({"y", "a"}).text, "1");
  EXPECT_EQ(root.at({"y", "b"}).text, "3");
  EXPECT_EQ(root.at({"z", "b"}).text, "2");
  EXPECT_EQ(root.at({"z", "b", "c"}).kind, YamlNode::Kind::null);
  // A key that is there twice: the last one, as the API server takes it.
  EXPECT_EQ(read("a: 1\na: 2\n").documents[0].at("a").text, "2");
  // An alias inside of what it names is nothing.
  EXPECT_EQ(read("a: &a [*a]\n").documents.size(), 1u);
}

TEST(YamlTree, ADamagedDocumentCostsItselfAlone) {
  const YamlText text = read("a: 1\n---\nb: [1\n---\nc: 3\n");
  ASSERT_EQ(text.documents.size(), 2u);
  ASSERT_EQ(text.damage.size(), 1u);
  EXPECT_GE(text.damage[0].line, 3u);
  EXPECT_LE(text.damage[0].line, 4u);
}

TEST(YamlTree, KeysThatStandTwice) {
  const auto yaml = parse_yaml(
      "a: 1\nb: {c: 1, c: 2}\na: 2\n---\nx: &x {a: 1}\ny: {<<: *x, a: 2}\n"
      "z: {a: 2, <<: *x}\n",
      "f");
  ASSERT_TRUE(yaml);
  ASSERT_EQ(yaml->repeats.size(), 2u);
  EXPECT_EQ(yaml->repeats[0].key, "c");
  EXPECT_EQ(yaml->repeats[1].line, 3u);
}

TEST(YamlTree, TextBehindADocumentIsNotLost) {
  const auto yaml = parse_yaml("a: 1\n---\n{{ .Values.x }}\nkind: Pod\n", "f");
  ASSERT_TRUE(yaml);
  ASSERT_EQ(yaml->damage.size(), 1u);
  EXPECT_EQ(yaml->damage[0].line, 4u);
  EXPECT_TRUE(parse_yaml("--- {a: 1}\n...\n# end\n", "f")->damage.empty());
}

TEST(YamlTree, DepthSizeAndAliasesAreBounded) {
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += '[';
  EXPECT_EQ(read(deep).damage[0].what, "nested too deeply");
  // Nine levels of nine references each: 387 million values.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k == 0 ? "" : ", ") + before;
    bomb += "]\n";
  }
  EXPECT_EQ(read(bomb).damage[0].what, "too many values");
  EXPECT_FALSE(parse_yaml(std::string(k_most_yaml_bytes + 1, ' '), "a.yaml"));
  std::string many;
  for (size_t i = 0; i <= k_most_yaml_documents; ++i) many += "---\n";
  EXPECT_FALSE(parse_yaml(many, "a.yaml"));
}

}  // namespace yaml_tree_test
}  // namespace cufit::formats
