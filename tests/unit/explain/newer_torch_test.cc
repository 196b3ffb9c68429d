// SPDX-License-Identifier: Apache-2.0
#include "explain/newer_torch.h"

#include <gtest/gtest.h>

#include "explain/captured_args.h"
#include "explain/release_wheel.h"

namespace cufit::explain {
namespace newer_torch_test {

using Args = std::map<std::string, std::string>;

facts::Facts with_torch(const char* torch, const char* python = nullptr) {
  facts::Facts facts;
  facts.envs.resize(1);
  facts.envs[0].torch.version = known<std::string>(torch, SourceKind::claimed, "t:1");
  if (python) facts.envs[0].python = known<std::string>(python, SourceKind::claimed, "t:2");
  return facts;
}

Args newer(const char* text, const facts::Facts& facts) {
  Args args;
  add_newer_torch(args, formats::plain_text_lines(text), facts, knowledge::Knowledge::builtin());
  return args;
}

constexpr const char* k_missing =
    "AttributeError: module 'torch' has no attribute 'float8_e8m0fnu'";

TEST(NewerTorch, IsTheFirstReleaseThatHasTheNameInAVariantOfTheSameCuda) {
  const Args args = newer(k_missing, with_torch("2.6.0+cu124"));
  EXPECT_EQ(args.at("first_torch"), "2.7");
  EXPECT_EQ(args.at("newer_torch"), "2.7.1");
  EXPECT_EQ(args.at("newer_tag"), "cu126");
  EXPECT_EQ(args.at("newer_vision"), "0.22.1");
}

TEST(NewerTorch, IsNotSaidWhereTheVariantIsUnknownOrTheNameIsThere) {
  EXPECT_EQ(newer(k_missing, {}).at("first_torch"), "2.7");
  EXPECT_EQ(newer(k_missing, {}).count("newer_torch"), 0u);
  const Args args = newer(k_missing, with_torch("2.8.0+cu128"));
  EXPECT_EQ(args.at("torch_have"), "2.8.0+cu128");
  EXPECT_EQ(args.count("newer_torch"), 0u);
  EXPECT_TRUE(newer("module 'torch' has no attribute '_C'", with_torch("2.6.0+cu124")).empty());
}

TEST(ReleaseWheel, IsTheFileOfThisTorchCudaAbiAndPython) {
  Args args;
  add_release_wheel(args, with_torch("2.7.1+cu128", "3.12.4"), knowledge::Knowledge::builtin());
  EXPECT_NE(args.at("flash_wheel").find("%2Bcu12torch2.7cxx11abiTRUE-cp312-cp312-linux_x86_64"),
            std::string::npos)
      << args.at("flash_wheel");
}

TEST(ReleaseWheel, IsNotGuessed) {
  for (const auto& [torch, python] : {std::pair<const char*, const char*>{"2.7.1", "3.12.4"},
                                      {"2.7.1+cu128", nullptr},
                                      {"2.12.0+cu130", "3.12.1"},
                                      {"2.7.1+cu128", "3.7.9"}}) {
    Args args;
    add_release_wheel(args, with_torch(torch, python), knowledge::Knowledge::builtin());
    EXPECT_TRUE(args.empty()) << torch;
  }
}

TEST(CapturedArgs, PackagesOfOneBranchLeaveTheBranch) {
  Args args = {{"new_branch", "570"}, {"other_branch", "570"}};
  add_captured_args(args, {}, knowledge::Knowledge::builtin());
  EXPECT_EQ(args.count("other_branch"), 0u);
}

}  // namespace newer_torch_test
}  // namespace cufit::explain
