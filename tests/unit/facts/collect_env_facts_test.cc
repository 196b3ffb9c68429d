// SPDX-License-Identifier: Apache-2.0
#include "facts/collect_env_facts.h"
#include "support/places.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace cufit::facts {
namespace collect_env_facts_test {

Facts facts_of(const std::string& text) {
  Result<Facts> facts = facts_from_dump(text, "dump.txt");
  EXPECT_TRUE(facts.has_value());
  return facts ? *facts : Facts();
}

TEST(Dump, EveryFactIsClaimedWithItsLine) {
  Facts facts = facts_of(
      "PyTorch version: 2.1.0+cu121\nIs debug build: False\nCUDA used to build PyTorch: 12.1\n"
      "ROCM used to build PyTorch: N/A\n\nOS: Ubuntu 22.04.3 LTS (x86_64)\nLibc version: "
      "glibc-2.35\n"
      "Python version: 3.10.12 (main, Jun 11 2023) [GCC 11.4.0] (64-bit runtime)\n"
      "Python platform: Linux-5.15.133.1-microsoft-standard-WSL2-x86_64-with-glibc2.35\nIs CUDA "
      "available: False\n"
      "CUDA runtime version: 12.2.140\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX "
      "3090\n"
      "Nvidia driver version: 520.61.05\ncuDNN version: Probably one of the following:\n"
      "/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7\n/usr/lib/x86_64-linux-gnu/"
      "libcudnn_ops_infer.so.8.9.7\n\nCPU:\n"
      "CPU(s):   16\nModel name:  AMD Ryzen 7\n\n[pip3] torch==2.1.0+cu121\n[pip3] "
      "nvidia_nccl.cu12==2.18.1\n");
  EXPECT_EQ(facts.origin, "dump");
  EXPECT_EQ(*facts.system.distribution, "Ubuntu 22.04.3 LTS");
  EXPECT_EQ(facts.system.distribution.source.kind, SourceKind::claimed);
  EXPECT_EQ(facts.system.distribution.source.detail, "dump.txt:6");
  EXPECT_EQ(*facts.system.distribution_id, "ubuntu 22.04");
  EXPECT_EQ(*facts.system.architecture, "x86_64");
  EXPECT_EQ(*facts.system.kernel, "5.15.133.1-microsoft-standard-WSL2");
  EXPECT_EQ(*facts.system.wsl, "2");
  EXPECT_EQ(*facts.system.glibc, "2.35");
  EXPECT_EQ(*facts.system.cpu_model, "AMD Ryzen 7");
  EXPECT_EQ(*facts.system.cpus, 16u);
  EXPECT_FALSE(facts.system.container);
  EXPECT_EQ(*facts.nvml.driver_version, "520.61.05");
  ASSERT_EQ(facts.nvml.gpus.size(), 1u);
  EXPECT_EQ(*facts.nvml.gpus[0].name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(facts.nvml.gpus[0].name.source.detail, "dump.txt:12");
  EXPECT_EQ(*facts.toolkits.at(0).version, "12.2.140");
  const PythonEnv& env = facts.envs.at(0);
  EXPECT_EQ(env.path, "(claimed)");
  EXPECT_EQ(*env.python, "3.10.12");
  EXPECT_EQ(*env.torch.version, "2.1.0+cu121");
  EXPECT_EQ(env.torch.variant, "cu121");
  EXPECT_EQ(*env.torch.cuda, "12.1");
  EXPECT_EQ(env.torch.hip.why, WhyNot::not_present);
  EXPECT_FALSE(*env.torch.debug);
  EXPECT_EQ(*env.torch_run, "torch.cuda.is_available() is False");
  ASSERT_EQ(env.distributions->size(), 2u);
  EXPECT_EQ(env.distributions->at(0).name, "nvidia-nccl-cu12");
  ASSERT_EQ(env.shadowed.size(), 2u);
  EXPECT_EQ(env.shadowed[0].name, "libcudnn.so.8");
  EXPECT_EQ(env.shadowed[0].version, "8.9.7");
}

TEST(Dump, WhatTheTextDoesNotKnowStaysUnknown) {
  Facts facts = facts_of(
      "PyTorch version: N/A\nIs debug build: N/A\nCUDA used to build PyTorch: N/A\nOS: Could not "
      "collect\n"
      "Libc version: N/A\nIs CUDA available: N/A\nCUDA runtime version: Could not collect\n"
      "GPU models and configuration: Could not collect\nNvidia driver version: Could not "
      "collect\n");
  EXPECT_FALSE(facts.envs.at(0).torch.version);
  EXPECT_EQ(facts.envs[0].torch.cuda.why,
            WhyNot::not_asked);  // torch was not importable: its build is not known
  EXPECT_FALSE(facts.nvml.driver_version);
  EXPECT_EQ(facts.nvml.driver_version.note, "the text says `Could not collect`");
  EXPECT_EQ(facts.nvml.driver_version.source.detail, "dump.txt:9");
  EXPECT_FALSE(facts.cuda.init_result);
  EXPECT_FALSE(facts.system.distribution);
  EXPECT_FALSE(facts.envs[0].torch_run);
  EXPECT_TRUE(facts.toolkits.empty());
  EXPECT_TRUE(facts.nvml.gpus.empty());
}

TEST(Dump, ATorchBuiltWithoutCudaIsToldFromAnUnknownOne) {
  for (const char* word : {"None", "Could not collect", "N/A"}) {
    Facts facts =
        facts_of(std::string("PyTorch version: 2.4.0\nCUDA used to build PyTorch: ") + word + "\n");
    EXPECT_FALSE(facts.envs.at(0).torch.cuda) << word;
    EXPECT_EQ(facts.envs[0].torch.cuda.why, WhyNot::not_present) << word;
  }
}

TEST(Dump, RefusesOtherTexts) {
  Result<Facts> facts = facts_from_dump("Dear colleague,\nit does not work\n", "mail.txt");
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, Code::malformed);
  EXPECT_NE(facts.error().what.find("mail.txt"), std::string::npos);
}

TEST(Dump, RealDumpOfAnH200) {
  std::ifstream file(cufit::test::source_dir() + "/../shared/gpu/machine-h200/collect_env.txt");
  if (!file) GTEST_SKIP() << "the shared dump is not beside this checkout";
  std::stringstream text;
  text << file.rdbuf();
  Facts facts = facts_of(text.str());
  EXPECT_EQ(*facts.envs.at(0).torch.version, "2.11.0+cu130");
  EXPECT_EQ(*facts.nvml.driver_version, "580.159.04");
  EXPECT_EQ(*facts.nvml.gpus.at(0).name, "NVIDIA H200");
  EXPECT_EQ(*facts.system.distribution_id, "ubuntu 24.04");
  EXPECT_EQ(*facts.system.kernel, "6.18.44-fc-v657-gpu");
  EXPECT_EQ(*facts.system.cpus, 16u);
  EXPECT_EQ(facts.envs[0].distributions->size(), 30u);
  EXPECT_EQ(facts.envs[0].shadowed.size(), 8u);
  EXPECT_EQ(*facts.toolkits.at(0).version, "13.0.88");
}

}  // namespace collect_env_facts_test
}  // namespace cufit::facts
