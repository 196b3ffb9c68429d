// SPDX-License-Identifier: Apache-2.0
#include "formats/python/package_list.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace package_list_test {

const char* to_text(PackageKind kind) {
  switch (kind) {
    case PackageKind::installed:
      return "installed";
    case PackageKind::requested:
      return "requested";
    case PackageKind::removed:
      return "removed";
    case PackageKind::mentioned:
      return "mentioned";
  }
  return "";
}

// "torch 2.3.0 installed:1"
std::string entries_of(std::string_view text) {
  std::vector<std::string> out;
  for (const PackageEntry& entry : parse_package_list(plain_text_lines(text)).entries)
    out.push_back(format("{} {} {}{}:{}", entry.name, entry.version, to_text(entry.kind),
                         entry.failed ? "!" : "", entry.line));
  return join(out, ", ");
}

TEST(PackageList, ReadsListsOfPipAndConda) {
  EXPECT_EQ(
      entries_of("Package            Version\n------------------ -----\ntorch  2.3.0+cu121\n"
                 "ruamel.yaml        0.17.21\nmypkg 1.0 /home/user/src\n\nloss 0.5\n"),
      "torch 2.3.0+cu121 installed:3, ruamel.yaml 0.17.21 installed:4, mypkg 1.0 installed:5");
  EXPECT_EQ(entries_of("- torch                     2.1.2\n- flash-attn                2.5.8\n"
                       "loss                      0.23\n- cuda 11.7\n"),
            "torch 2.1.2 installed:1, flash-attn 2.5.8 installed:2");
  EXPECT_EQ(entries_of("mamba-ssm==2.0.3\ntorch==2.3.0\nnvidia-cuda-runtime-cu12==12.1.105\n"),
            "mamba-ssm 2.0.3 installed:1, torch 2.3.0 installed:2, "
            "nvidia-cuda-runtime-cu12 12.1.105 installed:3");
  PackageList conda = parse_package_list(plain_text_lines(
      "pytorch                   0.4.1           py37_cuda0.0_cudnn0.0_1    pytorch\n"
      "conda list: pytorch 1.9.0 py3.8_cpu_0\n"));
  ASSERT_EQ(conda.entries.size(), 2u);
  EXPECT_TRUE(conda.entries[0].conda);
  EXPECT_EQ(conda.entries[0].build, "py37_cuda0.0_cudnn0.0_1");
  EXPECT_EQ(conda.entries[0].channel, "pytorch");
  EXPECT_EQ(conda.entries[1].version, "1.9.0");
  EXPECT_EQ(conda.entries[1].build, "py3.8_cpu_0");
}

TEST(PackageList, ReadsPipShowWithAndWithoutItsName) {
  EXPECT_EQ(entries_of("Name: torch\nVersion: 2.1.2\nRequires: filelock\n"),
            "torch 2.1.2 installed:2");
  EXPECT_EQ(
      entries_of("(venv) >pip show torch\nVersion: 2.4.0+cu121\n(venv) >pip show torchvision\n"
                 "Version: 0.20.1+cu124\nVersion: 9.9\n"),
      "torch 2.4.0+cu121 installed:2, torchvision 0.20.1+cu124 installed:4");
}

TEST(PackageList, FollowsWhatAnInstallerDid) {
  EXPECT_EQ(
      entries_of(
          "  Attempting uninstall: torch\n    Found existing installation: torch 2.3.1+cu118\n"
          "    Uninstalling torch-2.3.1+cu118:\n"
          "      Successfully uninstalled torch-2.3.1+cu118\n"
          "[!] torchaudio 2.3.1 requires torch==2.3.1, but you have torch 2.3.0 which is "
          "incompatible.\n"
          " Successfully installed nvidia-cublas-cu12-12.1.3.1 torch-2.3.0\n"),
      "torch 2.3.1+cu118 installed:2, torch 2.3.1+cu118 removed:4, torchaudio 2.3.1 installed:5, "
      "torch 2.3.0 installed:5, nvidia-cublas-cu12 12.1.3.1 installed:6, torch 2.3.0 installed:6");
  EXPECT_EQ(entries_of("Installed 2 packages in 12ms\n - torch==2.2.0\n + torch==2.3.0\n"),
            "torch 2.2.0 removed:2, torch 2.3.0 installed:3");
  EXPECT_EQ(entries_of("Requirement already satisfied: torch>=1.7 in ./venv/lib (1.13.1)\n"),
            "torch 1.13.1 installed:1");
}

TEST(PackageList, WhatAFailingCommandAskedForIsNotThere) {
  EXPECT_EQ(entries_of("pip3 install torch==1.10.0+cu113 torchvision==0.11.1+cu113 "
                       "torchaudio===0.10.0+cu113 -f https://index.example/x.html\n"
                       "ERROR: No matching distribution found for torch==1.10.0+cu113\n"),
            "torch 1.10.0+cu113 requested!:1, torchvision 0.11.1+cu113 requested:1, "
            "torchaudio 0.10.0+cu113 requested:1, torch 1.10.0+cu113 requested!:2");
  EXPECT_EQ(entries_of("ERROR: could not find a version that satisfies the requirement "
                       "torch==1.9.1+cu111 (from versions 0.1.2)\n"),
            "torch 1.9.1+cu111 requested!:1");
}

TEST(PackageList, ReadsCommandsAsWishes) {
  EXPECT_EQ(entries_of("conda install -c pytorch pytorch=1.9.0 torchvision cudatoolkit=11.3\n"),
            "pytorch 1.9.0 requested:1, torchvision  requested:1, cudatoolkit 11.3 requested:1");
  EXPECT_EQ(entries_of("pip install torch torchaudio ; pip install 'vllm>=0.12.0'\n"),
            "torch  requested:1, torchaudio  requested:1");
  EXPECT_EQ(entries_of("pip3 install https://index.example/whl/cu100/"
                       "torch-1.0.1.post2-cp35-cp35m-linux_x86_64.whl\n"),
            "torch 1.0.1.post2 requested:1");
  EXPECT_EQ(
      entries_of("(torch-2.1.0a0+41361538.nv23.06-cp310-cp310-linux_aarch64.whl: HTTP 404)\n"),
      "torch 2.1.0a0+41361538.nv23.06 requested!:1");
  EXPECT_EQ(entries_of("dependencies:\n  - pytorch=1.12.1\n  - numpy=1.21.5=py37h_0\n"),
            "pytorch 1.12.1 requested:2, numpy 1.21.5 requested:3");
}

TEST(PackageList, FindsMentionsInProse) {
  EXPECT_EQ(entries_of("flash_attn==2.8.0.post2, torch==2.6.0, vllm==0.8.4\n"),
            "flash_attn 2.8.0.post2 mentioned:1, torch 2.6.0 mentioned:1, vllm 0.8.4 mentioned:1");
  EXPECT_EQ(entries_of("OS: Ubuntu, Python 3.8.20, PyTorch 2.4.1+cu121, IsaacGym Preview 4\n"),
            "torch 2.4.1+cu121 mentioned:1");
  EXPECT_EQ(entries_of("PyTorch version: 2.1.\nPytorch version 2.7.0+cu128\nPyTorch: 2.11.0\n"
                       "torch: 2.3.0\n(torch 2.5.0)\n"),
            "torch 2.1 mentioned:1, torch 2.7.0+cu128 mentioned:2, torch 2.11.0 mentioned:3, "
            "torch 2.3.0 mentioned:4, torch 2.5.0 mentioned:5");
  EXPECT_EQ(
      entries_of("cudatoolkit=11.6, python=3.7.13, pytorch=1.12.1, torchvision=0.13.1\n"),
      "cudatoolkit 11.6 mentioned:1, torch 1.12.1 mentioned:1, torchvision 0.13.1 mentioned:1");
  EXPECT_EQ(entries_of(">>> torch.__version__\n'2.3.0+cpu'\nprint(torch.__version__)  # 2.2.1\n"),
            "torch 2.3.0+cpu installed:2, torch 2.2.1 installed:3");
  EXPECT_EQ(entries_of("    PyTorch 2.0.0+cu118 with CUDA 1108 (you have 1.13.1+cu117)\n"),
            "torch 1.13.1+cu117 installed:1");
  EXPECT_EQ(entries_of("pytorch-0.1.11-py27_2\n"), "torch 0.1.11 mentioned:1");
}

TEST(PackageList, WishesAndComparisonsInProseAreNoFacts) {
  EXPECT_EQ(entries_of("xformers requires torch 2.4.0, (PyTorch 0.3.0 worked)\n"), "");
  EXPECT_EQ(entries_of("version that was used to compile\nPyTorch (11.3). PyTorch (12.1)\n"), "");
  EXPECT_EQ(entries_of("conda install -c x pytorch      (PyTorch 0.3.1)\n"),
            "pytorch  requested:1, torch 0.3.1 mentioned:1");
  EXPECT_EQ(entries_of("torch>=2.0 NumPy 1.x torch 2 epoch 1.5 lib/torch/2.0 torch-2.0/ x=1.2.3\n"),
            "");
}

TEST(PackageList, TakesWheelNamesApart) {
  PackageEntry wheel = wheel_name("torch-2.3.0%2Bcu121-cp310-cp310-linux_x86_64.whl");
  EXPECT_EQ(wheel.name, "torch");
  EXPECT_EQ(wheel.version, "2.3.0+cu121");
  EXPECT_EQ(wheel_name("torch.whl").version, "");
  EXPECT_EQ(wheel_name("a-b-c-d-e.whl").version, "");
}

TEST(PackageList, BoundsWhatItKeeps) {
  std::string text;
  for (int i = 0; i < 6000; ++i) text += format("p{}==1.{}\n", i, i);
  EXPECT_EQ(parse_package_list(plain_text_lines(text)).entries.size(), 4000u);
}

}  // namespace package_list_test
}  // namespace cufit::formats
