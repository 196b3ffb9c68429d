// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/collect_env_dump.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace collect_env_dump_test {

std::string value(const CollectEnvDump& dump, const char* name) {
  const DumpField* field = dump.find(name);
  return field ? field->value : "(none)";
}

TEST(CollectEnvDump, OldestEra) {
  CollectEnvDump dump = parse_collect_env_dump(
      "Collecting environment information...\nPyTorch version: 1.4.0\nIs debug build: No\n"
      "CUDA used to build PyTorch: 10.1\n\nOS: Ubuntu 18.04.3 LTS\nGCC version: (Ubuntu 7.4.0-1) "
      "7.4.0\n"
      "CMake version: Could not collect\n\nPython version: 3.7\nIs CUDA available: Yes\n"
      "CUDA runtime version: 10.1.243\nGPU models and configuration: \nGPU 0: Tesla "
      "V100-SXM2-16GB\n"
      "GPU 1: Tesla V100-SXM2-16GB\n\nNvidia driver version: 418.87.00\n"
      "cuDNN version: /usr/lib/x86_64-linux-gnu/libcudnn.so.7.6.3\n\nVersions of relevant "
      "libraries:\n"
      "[pip] numpy==1.17.4\n[pip3] torch==1.4.0\n[conda] pytorch                   1.4.0           "
      "py3.7_cuda10.1.243_cudnn7.6.3_0    pytorch\n");
  EXPECT_TRUE(dump_says_yes(value(dump, "is_cuda_available")));
  EXPECT_TRUE(dump_says_no(value(dump, "is_debug_build")));
  ASSERT_EQ(dump.gpus.size(), 2u);
  EXPECT_EQ(dump.gpus[1].name, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(dump.gpus[1].line, 15u);
  EXPECT_EQ(value(dump, "cudnn_version"), "/usr/lib/x86_64-linux-gnu/libcudnn.so.7.6.3");
  ASSERT_EQ(dump.packages.size(), 3u);
  EXPECT_EQ(dump.packages[0].manager, "pip");
  EXPECT_EQ(dump.packages[2].name + " " + dump.packages[2].version + " " + dump.packages[2].build +
                " " + dump.packages[2].channel,
            "pytorch 1.4.0 py3.7_cuda10.1.243_cudnn7.6.3_0 pytorch");
}

TEST(CollectEnvDump, GpuLinesLoseTheUuidAndKeepMig) {
  CollectEnvDump dump = parse_collect_env_dump(
      "PyTorch version: 2.3.0\nGPU models and configuration: \n"
      "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1c2d)\n  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n"
      "  MIG 3g.40gb     Device  1: (UUID: MIG-2)\nGPU 3: NVIDIA A100-SXM4-80GB\nNvidia driver "
      "version: 535\n");
  ASSERT_EQ(dump.gpus.size(), 2u);
  EXPECT_EQ(dump.gpus[0].name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(dump.gpus[0].mig, (std::vector<std::string>{"1g.10gb", "3g.40gb"}));
  EXPECT_EQ(dump.gpus[1].index, 3u);
}

TEST(CollectEnvDump, SectionedFormOfVllm) {
  CollectEnvDump dump = parse_collect_env_dump(
      "uv is set\n==============================\n        System "
      "Info\n==============================\n"
      "OS                           : Ubuntu 22.04.5 LTS (x86_64)\nLibc version                 : "
      "glibc-2.35\n\n"
      "==============================\n       PyTorch Info\n==============================\n"
      "PyTorch version              : 2.7.0+cu126\nIs debug build               : False\n"
      "CUDA used to build PyTorch   : 12.6\n\n==============================\n       CUDA / GPU "
      "Info\n"
      "==============================\nIs CUDA available            : True\n"
      "GPU models and configuration : \nGPU 0: NVIDIA L4\nGPU 1: NVIDIA L4\n\n"
      "Nvidia driver version        : 550.90.07\n\n==============================\n          CPU "
      "Info\n"
      "==============================\nCPU(s):     48\nModel name: AMD EPYC 7R13\n\n"
      "==============================\nVersions of relevant "
      "libraries\n==============================\n"
      "[pip3] torch==2.7.0\n[conda] Could not collect\n\n==============================\n         "
      "vLLM Info\n"
      "==============================\nROCM Version                 : Could not collect\n"
      "vLLM Version                 : 0.9.1\nvLLM Build Flags:\n  CUDA Archs: Not Set; ROCm: "
      "Disabled\n"
      "GPU Topology:\n  \tGPU0\tCPU Affinity\nGPU0\t X \t0-47\n\n==============================\n"
      "     Environment Variables\n==============================\nNVIDIA_VISIBLE_DEVICES=all\n"
      "LD_LIBRARY_PATH=/usr/local/cuda/lib64\n");
  EXPECT_EQ(value(dump, "torch_version"), "2.7.0+cu126");
  EXPECT_EQ(value(dump, "os"), "Ubuntu 22.04.5 LTS (x86_64)");
  EXPECT_EQ(value(dump, "nvidia_driver_version"), "550.90.07");
  EXPECT_EQ(value(dump, "vllm_version"), "0.9.1");
  EXPECT_EQ(dump.gpus.size(), 2u);
  ASSERT_EQ(dump.cpu.size(), 2u);
  EXPECT_EQ(dump.cpu[0].value, "48");
  ASSERT_EQ(dump.variables.size(), 2u);
  EXPECT_EQ(dump.variables[1].value, "/usr/local/cuda/lib64");
  EXPECT_EQ(dump.packages.size(), 1u);
}

// The same three lines as people paste them.
TEST(CollectEnvDump, PastedVariants) {
  for (const char* text : {
           "PyTorch version: 2.1.0+cu121\nOS: Ubuntu 22.04.3 LTS (x86_64)\nIs CUDA available: "
           "True\n",
           "PyTorch version: 2.1.0+cu121\r\nOS: Ubuntu 22.04.3 LTS (x86_64)\r\nIs CUDA available: "
           "True\r\n",
           "```text\nPyTorch version: 2.1.0+cu121\nOS: Ubuntu 22.04.3 LTS (x86_64)\nIs CUDA "
           "available: True\n```\n",
           "<details>\n<summary>env</summary>\n\n> PyTorch version: 2.1.0+cu121\n> OS: Ubuntu "
           "22.04.3 LTS (x86_64)\n"
           "> > Is CUDA available: True\n</details>",
           "2024-05-01T12:00:00.1234567Z PyTorch version: 2.1.0+cu121\n2024-05-01T12:00:00.12Z OS: "
           "Ubuntu 22.04.3 LTS "
           "(x86_64)\n[2024-05-01 12:00:01,123] Is CUDA available: True\n",
           "    - PyTorch version: 2.1.0+cu121\n    - OS: Ubuntu 22.04.3 LTS (x86_64)\n    * **Is "
           "CUDA available**: True\n",
           "\x1b[32mPyTorch version:\x1b[0m 2.1.0+cu121\nOS: Ubuntu 22.04.3 LTS (x86_64)\nIs CUDA "
           "available: True\x1b[0m",
           "\xEF\xBB\xBFPyTorch version\xEF\xBC\x9A"
           "2.1.0+cu121\nOS\xEF\xBC\x9AUbuntu 22.04.3 LTS (x86_64)\n"
           "Is CUDA available\xEF\xBC\x9ATrue",
           "PyTorch version:\n2.1.0+cu121\nOS: Ubuntu 22.04.3\nLTS (x86_64)\nIs CUDA available: "
           "True\n",
           "PyTorch version 2.1.0+cu121\nOS: Ubuntu 22.04.3 LTS (x86_64)\nIs CUDA available True\n",
       }) {
    CollectEnvDump dump = parse_collect_env_dump(text);
    EXPECT_EQ(value(dump, "torch_version"), "2.1.0+cu121") << text;
    EXPECT_EQ(value(dump, "os"), "Ubuntu 22.04.3 LTS (x86_64)") << text;
    EXPECT_TRUE(dump_says_yes(value(dump, "is_cuda_available"))) << text;
  }
}

TEST(CollectEnvDump, UnknownLabelsDoNotRunIntoTheFieldBefore) {
  CollectEnvDump dump = parse_collect_env_dump(
      "PyTorch version: 2.1.0\nIs XNNPACK available: True\nIs MPS available: False\nOS: "
      "Debian\nmore words\n");
  EXPECT_EQ(value(dump, "is_xnnpack_available"), "True");
  EXPECT_EQ(value(dump, "os"), "Debian more words");
}

TEST(CollectEnvDump, OurOwnSectionIsNotTorchs) {
  CollectEnvDump dump = parse_collect_env_dump(
      "PyTorch version: 2.1.0\nOS: Debian\n\ncufit:\nOS: other\nverdict: x\n");
  EXPECT_EQ(value(dump, "os"), "Debian");
}

TEST(CollectEnvDump, FirstOfTwoDumpsCounts) {
  CollectEnvDump dump =
      parse_collect_env_dump("PyTorch version: 2.1.0\nOS: A\n\nPyTorch version: 1.0\nOS: B\n");
  EXPECT_EQ(value(dump, "torch_version"), "2.1.0");
}

TEST(CollectEnvDump, HostileTexts) {
  EXPECT_FALSE(parse_collect_env_dump("").recognised());
  EXPECT_FALSE(parse_collect_env_dump("hello\nworld: yes\n").recognised());
  EXPECT_FALSE(parse_collect_env_dump(std::string(1000, '\0')).recognised());
  CollectEnvDump long_line = parse_collect_env_dump(
      "PyTorch version: 2.0\nOS: " + std::string(10 << 20, 'x') + "\nIs CUDA available: True\n");
  EXPECT_LE(value(long_line, "os").size(), 5000u);
  EXPECT_EQ(value(long_line, "is_cuda_available"), "True");
  ASSERT_FALSE(long_line.damage.empty());
  EXPECT_EQ(long_line.damage[0].offset, 2u);
  CollectEnvDump nul = parse_collect_env_dump(std::string("PyTorch version: 2\0.1\nOS: x\n", 28));
  EXPECT_EQ(value(nul, "torch_version"), "2.1");
  EXPECT_FALSE(nul.damage.empty());
  std::string many = "PyTorch version: 2.0\nOS: x\n";
  for (int i = 0; i < 50000; ++i) many += "[pip3] a==1\n";
  EXPECT_LE(parse_collect_env_dump(many).packages.size(), 20000u);
  // Every truncation of a good dump is read without a crash and keeps what came before the cut.
  const std::string good =
      "PyTorch version: 2.1.0\nOS: Debian\nGPU models and configuration: \nGPU 0: X (UUID: "
      "GPU-1)\n";
  for (size_t size = 0; size < good.size(); ++size) {
    CollectEnvDump cut = parse_collect_env_dump(good.substr(0, size));
    EXPECT_EQ(cut.recognised(), size >= 26) << size;
  }
}

TEST(CollectEnvDump, ControlCharactersDoNotPass) {
  CollectEnvDump dump = parse_collect_env_dump("PyTorch version: 2\x1b]0;x\x07\nOS: \x01y\n");
  EXPECT_EQ(value(dump, "torch_version").find('\x1b'), std::string::npos);
  EXPECT_EQ(value(dump, "os").find('\x01'), std::string::npos);
}

}  // namespace collect_env_dump_test
}  // namespace cufit::formats
