// SPDX-License-Identifier: Apache-2.0
#include "formats/python/wheel_variants.h"

#include <gtest/gtest.h>

#include "formats/python/index_setting.h"
#include "formats/python/wheel_name.h"

namespace cufit::formats {
namespace wheel_variants_test {

TEST(WheelVariants, AreReadAsTheDraftHasThem) {
  const auto read = parse_wheel_variants(
      R"({"default-priorities": {"namespace": ["nvidia", "x86_64"]},
          "variants": {"cu129": {"nvidia": {"sm_arch": ["90_real", "120_virtual"]}}, "null": {}}})",
      "t.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->namespaces, (std::vector<std::string>{"nvidia", "x86_64"}));
  ASSERT_EQ(read->variants.size(), 2u);
  EXPECT_EQ(read->variants[0].label, "cu129");
  ASSERT_EQ(read->variants[0].features.size(), 1u);
  EXPECT_EQ(property_text(read->variants[0].features[0], "90_real"),
            "nvidia :: sm_arch :: 90_real");
  EXPECT_TRUE(read->variants[1].features.empty());
}

TEST(WheelVariants, OthersAreRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"variants": []})", R"({"variants": {"A B": {}}})",
        R"({"variants": {"a": {"nvidia": []}}})", R"({"variants": {"a": {"nvidia": {"x": "y"}}}})",
        R"({"variants": {"a": {"nvidia": {"x": ["A B"]}}}})"})
    EXPECT_FALSE(parse_wheel_variants(text, "t.json")) << text;
}

TEST(WheelVariants, ALabelStandsBehindThePlatform) {
  const auto name = parse_wheel_name("torch-2.8.0-cp313-cp313-manylinux_2_28_x86_64-cu129.whl");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->variant, "cu129");
  EXPECT_EQ(name->pythons, std::vector<std::string>{"cp313"});
  EXPECT_EQ(name->platforms, std::vector<std::string>{"manylinux_2_28_x86_64"});
  const auto build = parse_wheel_name("a-1-2local-py3-none-any.whl");
  ASSERT_TRUE(build);
  EXPECT_EQ(build->build, "2local");
  EXPECT_EQ(build->variant, "");
  const auto both = parse_wheel_name("a-1-2-py3-none-any-null.whl");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->build, "2");
  EXPECT_EQ(both->variant, "null");
  EXPECT_FALSE(parse_wheel_name("a-1-x-py3-none-any-null.whl"));
}

TEST(IndexSetting, AMirrorIsToldByItsAddress) {
  EXPECT_EQ(pytorch_mirror("https://mirror.example/whl/cu126/"), "https://mirror.example/whl");
  EXPECT_EQ(pytorch_mirror("https://mirror.example/pytorch/whl"),
            "https://mirror.example/pytorch/whl");
  for (const char* other :
       {"https://download.pytorch.org/whl/cu126", "https://mirror.example/simple",
        "https://mirror.example/cu", "https://cu126", "https://mirror.example/whl/cpu",
        "https://mirror.example/whl/cu126?token=x", "file:///whl/cu126", ""})
    EXPECT_EQ(pytorch_mirror(other), "") << other;
}

}  // namespace wheel_variants_test
}  // namespace cufit::formats
