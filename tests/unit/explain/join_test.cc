// SPDX-License-Identifier: Apache-2.0
#include "explain/join.h"

#include <gtest/gtest.h>

#include "explain/default_wheel.h"

namespace cufit::explain {
namespace join_test {

facts::Facts machine() {
  facts::Facts out;
  out.kernel.version = known<std::string>("535.183.01", SourceKind::file, "/proc/driver/nvidia");
  facts::NvmlGpu gpu;
  gpu.name = known<std::string>("NVIDIA RTX A6000", SourceKind::nvml, "NVML");
  out.nvml.gpus.push_back(gpu);
  return out;
}

TEST(Join, FillsWhatTheTextDoesNotSay) {
  facts::Facts text;
  facts::NvmlGpu claimed;
  claimed.name = known<std::string>("GeForce GTX 1080", SourceKind::claimed, "stdin:3");
  text.nvml.gpus.push_back(claimed);
  const facts::Facts both = join(text, machine());
  // The text's GPU stays: the log may come from another machine.
  ASSERT_EQ(both.nvml.gpus.size(), 1u);
  EXPECT_EQ(*both.nvml.gpus[0].name, "GeForce GTX 1080");
  EXPECT_EQ(*both.kernel.version, "535.183.01");
}

TEST(Join, KeepsTheTextsDriver) {
  facts::Facts text;
  text.kernel.version = known<std::string>("470.57", SourceKind::claimed, "stdin:1");
  const facts::Facts both = join(text, machine());
  EXPECT_EQ(*both.kernel.version, "470.57");
  EXPECT_EQ(*both.nvml.gpus.at(0).name, "NVIDIA RTX A6000");
}

TEST(Conflicts, AreWhatNoMachineHasTogether) {
  facts::Facts text;
  facts::NvmlGpu claimed;
  claimed.name = known<std::string>("RTX A6000", SourceKind::claimed, "stdin:3");
  text.nvml.gpus.push_back(claimed);
  EXPECT_TRUE(conflicts(text, machine()).empty());
  EXPECT_TRUE(conflicts({}, machine()).empty());
  text.nvml.gpus[0].name =
      known<std::string>("NVIDIA GeForce RTX 5090", SourceKind::claimed, "x:1");
  text.kernel.version = known<std::string>("580.65.06", SourceKind::claimed, "stdin:1");
  const std::vector<Conflict> found = conflicts(text, machine());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what, "gpu");
  EXPECT_EQ(found[1].text, "580.65.06");
  EXPECT_EQ(found[1].beside, "535.183.01");
}

facts::Facts with_torch(const std::string& version) {
  facts::Facts out;
  facts::PythonEnv env;
  env.torch.version = known<std::string>(version, SourceKind::claimed, "stdin:1");
  out.envs.push_back(env);
  return out;
}

TEST(Conflicts, AnotherTorchIsNone) {
  facts::Facts there = machine();
  there.envs = with_torch("2.3.1+cu121").envs;
  EXPECT_TRUE(conflicts(with_torch("2.11.0+cu130"), there).empty());
  const facts::Facts both = join(with_torch("2.11.0+cu130"), there);
  ASSERT_EQ(both.envs.size(), 1u);
  EXPECT_EQ(*both.envs[0].torch.version, "2.11.0+cu130");
  EXPECT_EQ(*both.kernel.version, "535.183.01");
}

std::string assumed_cuda(facts::Facts facts) {
  assume_default_wheels(facts, knowledge::Knowledge::builtin());
  const Fact<std::string>& cuda = facts.envs.at(0).torch.cuda;
  return cuda ? *cuda : "";
}

TEST(DefaultWheel, IsAssumedWhereATextNamesNoVariant) {
  EXPECT_EQ(assumed_cuda(with_torch("2.1.0")), "12.1");
  EXPECT_EQ(assumed_cuda(with_torch("1.13.1")), "11.7");
  EXPECT_EQ(assumed_cuda(with_torch("2.1")), "12.1");
}

TEST(DefaultWheel, IsNotAssumedForWhatMayBeSomethingElse) {
  EXPECT_EQ(assumed_cuda(with_torch("2.1.0+cpu")), "");
  EXPECT_EQ(assumed_cuda(with_torch("99.0.0")), "");
  facts::Facts windows = with_torch("2.1.0");
  windows.system.distribution = known<std::string>("Windows 11", SourceKind::claimed, "stdin:2");
  EXPECT_EQ(assumed_cuda(windows), "");
  facts::Facts arm = with_torch("2.1.0");
  arm.system.architecture = known<std::string>("aarch64", SourceKind::claimed, "stdin:2");
  EXPECT_EQ(assumed_cuda(arm), "");
  facts::Facts conda = with_torch("2.1.0");
  conda.envs[0].kind = "conda";
  EXPECT_EQ(assumed_cuda(conda), "");
}

}  // namespace join_test
}  // namespace cufit::explain
