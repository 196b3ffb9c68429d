// SPDX-License-Identifier: Apache-2.0
// The next step of a paste, as it is printed: it must fit what the text says of the machine, and
// carry the text's own numbers, in both languages.
#include <gtest/gtest.h>

#include "base/format.h"
#include "explain/explain.h"
#include "report/explain.h"

namespace cufit::report {
namespace next_steps_test {

struct Step {
  std::string cause, en, zh, why;
};

Step step_of(std::string_view text) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  explain::Explainer explainer(knowledge);
  explainer.add(text);
  const explain::Explanation answer = explainer.finish({});
  if (answer.causes.empty()) return {};
  const explain::Cause& first = answer.causes[0];
  return {first.id, cause_text(first, "next", "en", knowledge),
          cause_text(first, "next", "zh", knowledge), cause_text(first, "why", "en", knowledge)};
}

struct Case {
  const char* text;
  const char* cause;
  std::vector<const char*> said;        // in the steps of both languages
  std::vector<const char*> never = {};  // in neither
};

void expect(const Case& one) {
  const Step step = step_of(one.text);
  EXPECT_EQ(step.cause, one.cause) << one.text;
  for (const std::string& text : {step.en, step.zh}) {
    for (const char* word : one.said)
      EXPECT_TRUE(contains(text, word)) << word << " in " << text << "\nof " << one.text;
    for (const char* word : one.never)
      EXPECT_FALSE(contains(text, word)) << word << " in " << text << "\nof " << one.text;
  }
}

constexpr const char* k_cu126 = "--index-url https://download.pytorch.org/whl/cu126";

// The default Python index holds CPU builds for Windows.
TEST(NextStep, NamesTheIndexWhereTheDefaultOneIsNotForCuda) {
  const char* const cpu = "torch_not_cuda_build";
  const char* const session =
      "\n>>> torch.__version__\n'2.3.0+cpu'\n>>> torch.cuda.is_available()\nFalse\n";
  for (const char* place :
       {"Windows 11, RTX 3060", "Windows 10, RTX 3060", "RTX 3060",
        "PS D:\\work> nvidia-smi # RTX 3060", "OS: Microsoft Windows 11 Home, RTX 3060"})
    expect({(std::string(place) + session).c_str(),
            cpu,
            {"+cu", "--index-url https://download.pytorch.org/whl/cu"}});
  for (const char* place : {"Ubuntu 22.04, RTX 3060", "/home/u/venv/bin/python, RTX 3060"})
    expect({(std::string(place) + session).c_str(), cpu, {"pip install torch==2.3.0+cu121"}});
}

TEST(NextStep, ReadsTheDriverInChinese) {
  for (const char* line : {"显卡 RTX 3060，驱动版本 536.67", "RTX 3060，驱动：536.67。",
                           "RTX 3060 显卡驱动536.67，win11", "RTX 3060, driver 536.67"})
    expect({(std::string(line) +
             "\n>>> torch.__version__\n'2.11.0+cpu'\n>>> torch.cuda.is_available()\nFalse\n")
                .c_str(),
            "torch_not_cuda_build",
            {"torch==2.11.0+cu12"}});
  // A driver that is asked for is not the one that is there.
  expect(
      {"RTX 3060，需要驱动 536.67 以上\n>>> torch.__version__\n'2.11.0+cpu'\n>>> "
       "torch.cuda.is_available()\nFalse\n",
       "torch_not_cuda_build",
       {"torch==2.11.0+cu130"}});
}

TEST(NextStep, SaysWhatKeepsAWheelFromFitting) {
  expect(
      {"NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current "
       "PyTorch installation.\n"
       "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 "
       "sm_90.\n"
       "Python 3.8.19, torch 2.4.1+cu121\n"
       "| NVIDIA-SMI 570.86.10   Driver Version: 570.86.10   CUDA Version: 12.8     |\n",
       "arch_gpu_too_new",
       {"3.8.19", "torch==2.11.0+cu128", "--python 3.12"}});
  expect(
      {"    Found GPU0 Tesla K40m which is of cuda capability 3.5.\n"
       "    PyTorch no longer supports this GPU because it is too old.\n"
       "    The minimum cuda capability supported by this library is 3.7.\n",
       "arch_gpu_too_old",
       {"Tesla K40m (3.5)"},
       {"pip install"}});
  expect(
      {"    Found GPU0 Tesla K80 which is of cuda capability 3.7.\n"
       "    PyTorch no longer supports this GPU because it is too old.\n",
       "arch_gpu_too_old",
       {"+cu118"},
       {"cu126"}});
}

TEST(NextStep, ADriverOlderThanTheGpuGoesFirst) {
  const Step step = step_of(
      "RTX 5090, driver 535.54.03, Python 3.11\nNVIDIA GeForce RTX 5090 with CUDA capability "
      "sm_120 "
      "is not compatible with the current PyTorch installation.\n");
  EXPECT_EQ(step.cause, "arch_gpu_too_new");
  EXPECT_EQ(step.en.find("Update the NVIDIA driver to branch 580 first"), 0u) << step.en;
}

TEST(NextStep, CarriesTheNumbersOfTheMessage) {
  expect({"error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!",
          "host_compiler_unsupported",
          {"CC=gcc-11 CXX=g++-11"},
          {"gcc-12"}});
  expect({"error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!",
          "host_compiler_unsupported",
          {"CC=gcc-13 CXX=g++-13"}});
  expect(
      {"RuntimeError: The current installed version of g++ (13.2.0) is greater than the maximum "
       "required version "
       "by CUDA 12.1. Please make sure to use an adequate version of g++ (>=6.0.0, <13.0).",
       "host_compiler_unsupported",
       {"gcc-12"}});
  expect(
      {"fatal error C1189: #error:  -- unsupported Microsoft Visual Studio version! Only the "
       "versions between 2017 "
       "and 2022 (inclusive) are supported!",
       "host_compiler_unsupported",
       {"2017", "2022"},
       {"gcc"}});
  expect(
      {"ValueError: Free memory on device (10.21/23.65 GiB) on startup is less than desired GPU "
       "memory utilization "
       "(0.9, 21.28 GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
       "processes.",
       "serving_over_free",
       {"--gpu-memory-utilization 0.42"},
       {"0.7"}});
  expect(
      {"ValueError: To serve at least one request with the models's max seq len (131072), (16.00 "
       "GiB KV cache is "
       "needed, which is larger than the available KV cache memory (5.20 GiB). Based on the "
       "available memory, the "
       "estimated maximum model length is 42592. Try increasing `gpu_memory_utilization`",
       "serving_kv_budget",
       {"--max-model-len 42592"},
       {"8192"}});
  expect(
      {"nvcc fatal   : Unsupported gpu architecture 'compute_120'\nninja: build stopped: "
       "subcommand failed.",
       "nvcc_too_old_for_arch",
       {"12.8"},
       {"8.6+PTX"}});
  expect(
      {"nvcc fatal   : Unsupported gpu architecture 'compute_35'\nninja: build stopped: subcommand "
       "failed.",
       "nvcc_dropped_arch",
       {"compute_35", "11.8"}});
  expect(
      {"      RuntimeError:\n      The detected CUDA version (11.5) mismatches the version that "
       "was used to compile\n"
       "      PyTorch (12.1). Please make sure to use the same CUDA versions.\n",
       "ext_build_cuda_mismatch",
       {"/usr/local/cuda-12.1", "export PATH="},
       {"PATH=$CUDA_HOME/bin:$PATH`"}});
}

TEST(NextStep, NamesAPythonThatTheReleaseHas) {
  const char* const id = "no_matching_wheel";
  expect(
      {"ERROR: Could not find a version that satisfies the requirement torch==2.1.2 (from "
       "versions: 2.6.0, 2.7.0)\n"
       "ERROR: No matching distribution found for torch==2.1.2\nPython 3.13.1\n",
       id,
       {"3.11", "3.13"},
       {"3.12"}});
  expect(
      {"ERROR: Could not find a version that satisfies the requirement torch==1.13.1+cu117 (from "
       "versions: 2.2.0)\n"
       "ERROR: No matching distribution found for torch==1.13.1+cu117\nPython 3.12.2\n",
       id,
       {"3.10", "3.12"}});
  // Something else is in the way where the Python is among them.
  expect(
      {"ERROR: Could not find a version that satisfies the requirement torch==2.1.2 (from "
       "versions: none)\n"
       "ERROR: No matching distribution found for torch==2.1.2\nPython 3.11.4\n",
       id,
       {"platform.machine()"},
       {"uv venv"}});
}

TEST(NextStep, InAContainerTorchGoesFirst) {
  const std::string container =
      "root@autodl-container-9f3a11b2c3:~# python t.py\n"
      "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"
      "torch                     2.6.0+cu124\n";
  const Step step = step_of(container);
  EXPECT_EQ(step.cause, "driver_too_old");
  EXPECT_EQ(step.en.find("`python -m pip install torch==2.6.0+cu118"), 0u) << step.en;
  EXPECT_TRUE(contains(step.en, "on the host")) << step.en;
  EXPECT_TRUE(contains(step.zh, "主机")) << step.zh;
  EXPECT_FALSE(contains(step.en, "reboot")) << step.en;
}

// No driver newer than 470 drives Kepler, and no cuda-compat either.
TEST(NextStep, OffersNoDriverThatDropsTheGpu) {
  const Step step = step_of(
      "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"
      "torch                     2.6.0+cu124\n"
      "| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |\n"
      "|   0  Tesla K80           On   | 00000000:3E:00.0 Off |                    0 |\n");
  EXPECT_EQ(step.cause, "driver_too_old");
  EXPECT_TRUE(contains(step.en, "+cu118")) << step.en;
  EXPECT_FALSE(contains(step.en + step.why, "cuda-compat")) << step.why;
  EXPECT_FALSE(contains(step.en, "update")) << step.en;
}

TEST(NextStep, NamesTheRightTool) {
  expect(
      {"docker: Error response from daemon: unknown or invalid runtime name: nvidia.\n"
       "ii  nvidia-container-toolkit 1.15.0-1 amd64 NVIDIA Container toolkit\n$ which "
       "docker\n/snap/bin/docker\n",
       "container_runtime_not_registered",
       {"snap remove docker"}});
  const char* const missing = "modprobe: FATAL: Module nvidia not found in directory /lib/modules/";
  const char* const smi =
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n";
  const std::string rocky =
      std::string(smi) + missing +
      "5.14.0-427.el9.x86_64\n[root@rocky9 ~]# cat /etc/os-release\nRocky Linux 9\n";
  const std::string arch = std::string(smi) + missing + "6.9.1-arch1-1\n";
  const std::string ubuntu = std::string(smi) + missing + "6.8.0-45-generic\n";
  expect({rocky.c_str(), "module_not_built_for_kernel", {"sudo dnf install"}, {"apt"}});
  expect({arch.c_str(), "module_not_built_for_kernel", {"sudo pacman -S"}, {"apt"}});
  expect({ubuntu.c_str(), "module_not_built_for_kernel", {"sudo apt install"}, {"dnf"}});
  expect(
      {"fatal error: Python.h: No such file or directory\ncompilation terminated.\n"
       "'/tmp/tmpx/cuda_utils.cpython-310-x86_64-linux-gnu.so', '-lcuda']' returned non-zero exit "
       "status 1.\n",
       "build_deps_missing",
       {"python3.10-dev"}});
  expect(
      {"PyTorch version: 2.4.0\nIs debug build: False\nCUDA used to build PyTorch: Could not "
       "collect\n"
       "Is CUDA available: False\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 3060\n"
       "Nvidia driver version: 550.54\n[pip3] torch==2.4.0\n[conda] pytorch 2.4.0 py3.10_cpu_0 "
       "pytorch\n",
       "torch_not_cuda_build",
       {"conda remove -y pytorch", "torch==2.4.0+cu121", "torchvision=="}});
  expect(
      {"NVRM: installed in this system requires use of the NVIDIA open kernel modules.\n"
       "[   12.3] nvidia: probe of 0000:01:00.0 failed with error -1\n",
       "driver_kernel_module_flavour",
       {"nvidia-open"},
       {"nvidia-driver-580"}});
}

TEST(NextStep, OfAComposeFile) {
  expect(
      {"services:\n  app:\n    image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\n$ docker "
       "compose up\n"
       "RuntimeError: Found no NVIDIA driver on your system.\n$ nvidia-smi   # on the host\n"
       "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4     |\n",
       "container_no_gpu_requested",
       {"deploy.resources.reservations.devices", "capabilities: [gpu]"},
       {"--gpus all"}});
}

TEST(NextStep, WindowsShellsGetNoLinuxSyntax) {
  const Step step = step_of(
      "C:\\Users\\me> pip install flash-attn\n  Building wheel for flash-attn (setup.py) ... "
      "error\n"
      "      ModuleNotFoundError: No module named 'torch'\n  ERROR: Failed building wheel for "
      "flash-attn\n");
  EXPECT_EQ(step.cause, "build_isolation_hides_torch");
  EXPECT_TRUE(contains(step.en, "`, then `python -m pip install --no-build-isolation")) << step.en;
  EXPECT_FALSE(contains(step.en + step.zh, "&&")) << step.en;
}

TEST(NextStep, KnowsThePackagesOwnLimits) {
  expect(
      {"OSError: [WinError 126] The specified module could not be found. Error loading "
       "\"C:\\Python310\\lib\\site-packages\\torch\\lib\\fbgemm.dll\" or one of its "
       "dependencies.\ntorch 2.4.0+cu121\n",
       "windows_runtime_dll_missing",
       {"torch==2.4.1+cu121", "MSVC v143"},
       {"VCRedist"}});
  expect(
      {"RuntimeError: FlashAttention only supports Ampere GPUs or newer.\nGPU: Tesla T4, torch "
       "2.3.0+cu121\n",
       "ext_arch_missing",
       {"sdpa", "flash-attn"},
       {"TORCH_CUDA_ARCH_LIST"}});
  expect(
      {"WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
       "    PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.1.2+cu118)\n    Python  3.10.13 (you "
       "have 3.10.11)\n",
       "ext_abi_mismatch",
       {"xformers==0.0.23.post1", "whl/cu118"},
       {"--no-binary"}});
  expect(
      {"Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot "
       "open shared object "
       "file: No such file or directory\nfaster-whisper 1.0.3, ctranslate2 4.4.0, torch "
       "2.5.1+cu124\n",
       "cuda_lib_not_found",
       {"ctranslate2>=4.5"},
       {"--force-reinstall"}});
}

}  // namespace next_steps_test
}  // namespace cufit::report
