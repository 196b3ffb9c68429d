// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/prose_machine.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace prose_machine_test {

// Values of one kind, in order; "?" behind the weak ones.
std::string said(MachineWord what, std::string_view text) {
  std::vector<std::string> out;
  for (const MachineMention& mention : parse_machine_words(plain_text_lines(text)).mentions)
    if (mention.what == what) out.push_back(mention.value + (mention.weak ? "?" : ""));
  return join(out, ", ");
}

TEST(MachineWords, Python) {
  EXPECT_EQ(said(MachineWord::python, "Python 3.10.15\npython 3.8.5 (container)\npython=3.7.13\n"),
            "3.10.15, 3.8.5, 3.7.13");
  EXPECT_EQ(said(MachineWord::python, "    Python  3.10.10 (you have 3.10.6)\n"), "3.10.6");
  EXPECT_EQ(said(MachineWord::python, "/lib/python3.11/site-packages/x.cpython-310-x86_64.so\n"),
            "3.11?, 3.10?");
  EXPECT_EQ(said(MachineWord::python,
                 "requires Python 3.9, Python 3.8+, Python >=3.7, python main.py 3.4\n"),
            "");
}

TEST(MachineWords, SystemKernelAndLibc) {
  EXPECT_EQ(
      said(MachineWord::system, "Ubuntu 22.04.5 LTS, 5.15.0-157-generic\nWin11\nOS: NixOS 25.05\n"),
      "Ubuntu 22.04.5, Windows 11, NixOS 25.05");
  EXPECT_EQ(
      said(MachineWord::system, "Ubuntu, conda\nFile \"C:\\x\"\nnvidia/cuda:10.1-ubuntu18.04\n"),
      "Ubuntu?, Windows?");
  EXPECT_EQ(said(MachineWord::kernel,
                 "Linux <hostname> 3.13.0-116-generic #163-Ubuntu SMP\nkernel 6.13.4, x\n"
                 "headers for kernel 4.4.0-19041-Microsoft cannot be "
                 "found\n/lib/modules/3.13.0-88-generic/x\n"
                 "Linux-5.15.0-91-generic-x86_64-with-glibc2.35\n"),
            "3.13.0-116-generic, 6.13.4, 4.4.0-19041-Microsoft, 5.15.0-91-generic");
  EXPECT_EQ(said(MachineWord::glibc, "GLIBC version 2.31\nversion `GLIBC_2.32' not found\n"),
            "2.31");
  EXPECT_EQ(
      said(MachineWord::wsl, "WSL 2\nwsl 1 on windows 10\n5.15.133.1-microsoft-standard-WSL2\n"),
      "2, 1");
  EXPECT_EQ(said(MachineWord::secure_boot, "firmware: Secure Boot enabled\n"), "enabled");
  EXPECT_EQ(said(MachineWord::architecture,
                 "uname: aarch64 machine\nx.cpython-310-x86_64-linux-gnu.so\n"),
            "aarch64, x86_64?");
}

TEST(MachineWords, Driver) {
  EXPECT_EQ(said(MachineWord::driver,
                 "NVIDIA driver 535.183.01\nDriver Version: 470.57.02\nDriver: 570.86.10\n"
                 "nvidia-smi inside the container: Driver Version 387.12\nThe 535.129.03 NVIDIA "
                 "driver will\n"
                 "NVIDIA open kernel modules 570.86.16\n"),
            "535.183.01, 470.57.02, 570.86.10, 387.12, 535.129.03, 570.86.16");
  EXPECT_EQ(
      said(MachineWord::driver,
           "host driver: 525\napt install nvidia-driver-440\nNVIDIA-Linux-x86_64-570.124.04.run\n"),
      "525?, 440?, 570.124.04?");
  EXPECT_EQ(said(MachineWord::driver,
                 "requires driver 525.60.13, driver >= 450.80, driver 30 fps, driver 2.0\n"
                 "| NVIDIA-SMI 470.57.02   Driver Version: 470.57.02   CUDA Version: 11.4 |\n"),
            "");
}

TEST(MachineWords, CudaGccAndImages) {
  EXPECT_EQ(
      said(MachineWord::toolkit,
           "Cuda compilation tools, release 11.8, V11.8.89\nnvcc release 10.1, V10.1.243 ; x\n"
           "found: /usr/local/cuda-12.1/lib64\n"),
      "11.8.89, 10.1.243, 12.1?");
  EXPECT_EQ(
      said(MachineWord::cuda, "CUDA 12.1 in docker, cuda: 12.8, cuda=11.0, error 803, CUDA 10\n"),
      "12.1, 12.8, 11.0, 10");
  EXPECT_EQ(said(MachineWord::driver_cuda, "nvidia-smi CUDA: 12.8\n"), "12.8");
  EXPECT_EQ(said(MachineWord::gcc, "gcc (Ubuntu 9.4.0-1ubuntu1) 9.4.0\nPython 3.8 [GCC 7.3.0]\n"),
            "9.4.0");
  EXPECT_EQ(
      said(MachineWord::image,
           "docker pull anibali/pytorch:1.4.0-cuda10.1\nFROM nvcr.io/nvidia/pytorch:23.10-py3\n"
           "container: mxnet/python:1.9.1_gpu_cu112_py3  (x)\n"),
      "anibali/pytorch:1.4.0-cuda10.1, nvcr.io/nvidia/pytorch:23.10-py3, "
      "mxnet/python:1.9.1_gpu_cu112_py3");
}

TEST(MachineWords, Gpus) {
  MachineWords words = parse_machine_words(plain_text_lines("4x Tesla T4 per node, A100 40GB\n"));
  ASSERT_EQ(words.mentions.size(), 2u);
  EXPECT_EQ(words.mentions[0].value, "Tesla T4");
  EXPECT_EQ(words.mentions[0].count, 4u);
  EXPECT_EQ(words.mentions[1].memory_gb, 40u);
  EXPECT_EQ(said(MachineWord::gpu, "works on an RTX 3090\nlspci | grep \"RTX 5060\"\n"),
            "RTX 3090?");
}

}  // namespace prose_machine_test
}  // namespace cufit::formats
