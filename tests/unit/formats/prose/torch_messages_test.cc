// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/torch_messages.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace torch_messages_test {

TorchMessages messages_of(std::string_view text) {
  return parse_torch_messages(plain_text_lines(text));
}

TEST(TorchMessages, DriverAndDevices) {
  TorchMessages said = messages_of(
      "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found "
      "version 12080).\n"
      "    Found GPU0 NVIDIA GeForce GTX 1080 Ti which is of cuda capability 6.1.\n"
      "    PyTorch no longer supports this GPU because it is too old.\n"
      "    The minimum cuda capability supported by this library is 7.5.\n"
      "    Found GPU1 Tesla P100-PCIE-16GB which is of compute capability (CC) 6.0.\n"
      "x.py:230: UserWarning: NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not "
      "compatible with the\n"
      "The current PyTorch install supports CUDA capabilities sm_50 sm_75 sm_90a compute_120.\n");
  ASSERT_EQ(said.driver_cuda.size(), 1u);
  EXPECT_EQ(said.driver_cuda[0].value, "12.8");
  ASSERT_EQ(said.devices.size(), 3u);
  EXPECT_EQ(said.devices[0].index, 0u);
  EXPECT_EQ(said.devices[0].name, "NVIDIA GeForce GTX 1080 Ti");
  EXPECT_EQ(said.devices[0].capability, "6.1");
  EXPECT_EQ(said.devices[1].capability, "6.0");
  EXPECT_EQ(said.devices[2].name, "NVIDIA GeForce RTX 5080");
  EXPECT_EQ(said.devices[2].capability, "12.0");
  EXPECT_EQ(said.devices[2].line, 6u);
  EXPECT_EQ(said.minimum_capability.at(0).value, "7.5");
  ASSERT_EQ(said.archs.size(), 1u);
  EXPECT_EQ(said.archs[0].sm, (std::vector<std::string>{"50", "75", "90a"}));
  EXPECT_EQ(said.archs[0].ptx, std::vector<std::string>{"120"});
}

TEST(TorchMessages, OldAndNewWordingsOfTheMinimum) {
  EXPECT_EQ(messages_of("    The minimum cuda capability that we support is 3.5.\n")
                .minimum_capability.at(0)
                .value,
            "3.5");
  EXPECT_EQ(messages_of(
                "    Minimum and Maximum cuda capability supported by this version of PyTorch is\n"
                "    (7.0) - (12.0)\n")
                .minimum_capability.at(0)
                .value,
            "7.0");
}

TEST(TorchMessages, AnswersOfASession) {
  TorchMessages said = messages_of(
      ">>> torch.cuda.get_arch_list()\n['sm_50', 'sm_86', 'compute_86']\n>>> "
      "torch.version.cuda\n'12.1'\n"
      ">>> torch.cuda.get_device_capability(0)\n(8, 6)\n>>> torch.cuda.get_device_name(0)\n'NVIDIA "
      "A10'\n"
      ">>> torch.cuda.is_available()\nFalse\n(torch.cuda.device_count(): 1)\n"
      ">>> import torch; torch._C._cuda_getDriverVersion()\n9010\n");
  EXPECT_EQ(said.archs.at(0).sm.size(), 2u);
  EXPECT_EQ(said.torch_cuda.at(0).value, "12.1");
  ASSERT_EQ(said.devices.size(), 2u);
  EXPECT_EQ(said.devices[0].capability, "8.6");
  EXPECT_EQ(said.devices[1].name, "NVIDIA A10");
  EXPECT_EQ(said.cuda_available.at(0).value, "False");
  EXPECT_EQ(said.cuda_available[0].line, 10u);
  EXPECT_EQ(said.device_count.at(0).value, "1");
  EXPECT_EQ(said.driver_cuda.at(0).value, "9.1");
  TorchMessages inline_answers = messages_of(
      "torch.cuda.is_available()        # True\nif torch.cuda.is_available():\nFalse\n");
  ASSERT_EQ(inline_answers.cuda_available.size(), 1u);
  EXPECT_EQ(inline_answers.cuda_available[0].value, "True");
}

TEST(TorchMessages, MismatchesOfOthers) {
  TorchMessages said = messages_of(
      "The detected CUDA version (10.1) mismatches the version that was used to compile\nPyTorch "
      "(11.3). Please\n"
      "PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.0.1+cu118)\nTorch not compiled with CUDA "
      "enabled\n");
  EXPECT_EQ(said.toolkit_cuda.at(0).value, "10.1");
  EXPECT_EQ(said.torch_cuda.at(0).value, "11.3");
  EXPECT_EQ(said.torch_version.at(0).value, "2.0.1+cu118");
  EXPECT_EQ(said.without_cuda.size(), 1u);
  EXPECT_TRUE(messages_of("found version 3\nFound GPU which is of\nsm_120\n(you have mail)\n")
                  .driver_cuda.empty());
}

}  // namespace torch_messages_test
}  // namespace cufit::formats
