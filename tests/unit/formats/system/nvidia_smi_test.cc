// SPDX-License-Identifier: Apache-2.0
#include "formats/system/nvidia_smi.h"

#include <gtest/gtest.h>

#include "formats/prose/gpu_words.h"

namespace cufit::formats {
namespace nvidia_smi_test {

NvidiaSmi smi_of(std::string_view text) { return parse_nvidia_smi(plain_text_lines(text)); }

TEST(NvidiaSmi, ReadsATableOf535WithTwoGpusMigAndProcesses) {
  NvidiaSmi smi = smi_of(
      "| NVIDIA-SMI 535.54.03              Driver Version: 535.54.03    CUDA Version: 12.2     |\n"
      "| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |\n"
      "|=========================================+======================+======================|\n"
      "|   0  NVIDIA GeForce RTX 4090        Off | 00000000:01:00.0 Off |                  Off |\n"
      "| 30%   37C    P8              16W / 450W |     10MiB / 24564MiB |      0%      Default |\n"
      "|                                         |                      |                  N/A |\n"
      "|   1  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                   On |\n"
      "| N/A   35C    P0              46W / 400W |     34MiB / 40960MiB |      0%   E. Process |\n"
      "|                                         |                      |              Enabled |\n"
      "| MIG devices:                                                                          |\n"
      "|  1    1   0   0  |     11MiB / 20096MiB | 42      0 |  3   0    2    0    0 |\n"
      "|                  |      0MiB / 32767MiB |           |                       |\n"
      "| Processes:                                                                            |\n"
      "|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |\n"
      "|    0   N/A  N/A      1523      G   /usr/lib/xorg/Xorg                            4MiB |\n"
      "|    1   N/A  N/A      9871    C+G   python train me.py                            N/A |\n");
  ASSERT_EQ(smi.runs.size(), 1u);
  const SmiRun& run = smi.runs[0];
  EXPECT_EQ(run.driver, "535.54.03");
  EXPECT_EQ(run.cuda, "12.2");
  EXPECT_EQ(run.driver_line, 1u);
  ASSERT_EQ(run.gpus.size(), 2u);
  EXPECT_EQ(run.gpus[0].name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(run.gpus[0].bus, "00000000:01:00.0");
  EXPECT_EQ(run.gpus[0].used_mib, 10u);
  EXPECT_EQ(run.gpus[0].total_mib, 24564u);
  EXPECT_EQ(run.gpus[0].compute_mode, "Default");
  EXPECT_FALSE(run.gpus[0].mig.has_value());
  EXPECT_EQ(run.gpus[1].index, 1u);
  EXPECT_EQ(run.gpus[1].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(run.gpus[1].compute_mode, "E. Process");
  EXPECT_EQ(run.gpus[1].mig, true);
  EXPECT_EQ(run.gpus[1].line, 8u);
  ASSERT_EQ(run.gpus[1].mig_devices.size(), 1u);
  EXPECT_EQ(run.gpus[1].mig_devices[0].total_mib, 20096u);
  ASSERT_EQ(run.processes.size(), 2u);
  EXPECT_EQ(run.processes[0].pid, 1523u);
  EXPECT_EQ(run.processes[0].type, "G");
  EXPECT_EQ(run.processes[0].used_mib, 4u);
  EXPECT_EQ(run.processes[1].name, "python train me.py");
  EXPECT_FALSE(run.processes[1].used_mib.has_value());
}

TEST(NvidiaSmi, ReadsTheTablesOf2016AndOfWindows) {
  NvidiaSmi old = smi_of(
      "| NVIDIA-SMI 375.39                 Driver Version: 375.39                    |\n"
      "|   0  TITAN X (Pascal)    Off  | 0000:01:00.0      On |                  N/A |\n"
      "| 23%   37C    P8    16W / 250W |    498MiB / 12189MiB |      3%      Default |\n"
      "| Processes:                                                       GPU Memory |\n"
      "|  GPU       PID  Type  Process name                               Usage      |\n"
      "|    0      1234    C   python                                       486MiB |\n");
  ASSERT_EQ(old.runs.size(), 1u);
  EXPECT_EQ(old.runs[0].driver, "375.39");
  EXPECT_EQ(old.runs[0].cuda, "");
  ASSERT_EQ(old.runs[0].gpus.size(), 1u);
  EXPECT_EQ(old.runs[0].gpus[0].name, "TITAN X (Pascal)");
  EXPECT_EQ(old.runs[0].gpus[0].used_mib, 498u);
  ASSERT_EQ(old.runs[0].processes.size(), 1u);
  EXPECT_EQ(old.runs[0].processes[0].used_mib, 486u);
  NvidiaSmi windows = smi_of(
      "| NVIDIA-SMI 457.09       Driver Version: 457.09       CUDA Version: N/A      |\n"
      "| GPU  Name            TCC/WDDM | Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
      "|   0  GeForce GTX 1650   WDDM  | 00000000:01:00.0  On |                  N/A |\n");
  EXPECT_TRUE(windows.runs.at(0).windows);
  EXPECT_EQ(windows.runs[0].gpus.at(0).name, "GeForce GTX 1650");
  EXPECT_EQ(windows.runs[0].cuda, "N/A");
  NvidiaSmi newest =
      smi_of("| NVIDIA-SMI 595.45.04    KMD Version: 595.45.04     CUDA UMD Version: 13.2     |\n");
  EXPECT_EQ(newest.runs.at(0).driver, "595.45.04");
  EXPECT_EQ(newest.runs[0].cuda, "13.2");
}

TEST(NvidiaSmi, ReadsShortenedTablesAndCutNames) {
  NvidiaSmi smi = smi_of(
      "host:\n| NVIDIA-SMI 435.21       Driver Version: 435.21       CUDA Version: 10.1     |\n"
      "|   0  Tesla V100-PCIE...  Off  | 00000000:37:00.0 Off |\n...\n"
      "|   1  Tesla V100-PCIE...  Off  | 00000000:86:00.0 Off |\n");
  ASSERT_EQ(smi.runs.at(0).gpus.size(), 2u);
  EXPECT_TRUE(smi.runs[0].gpus[1].name_cut);
  EXPECT_EQ(smi.runs[0].gpus[1].name, "Tesla V100-PCIE...");
  NvidiaSmi prose = smi_of(
      "host: NVIDIA-SMI 510.108.03   Driver Version: 510.108.03   CUDA Version: 11.6\n"
      "GPU 0  NVIDIA GeForce ...  277MiB /  4096MiB\n");
  ASSERT_EQ(prose.runs.at(0).gpus.size(), 1u);
  EXPECT_EQ(prose.runs[0].gpus[0].name, "NVIDIA GeForce ...");
  EXPECT_TRUE(prose.runs[0].gpus[0].name_cut);
  EXPECT_EQ(prose.runs[0].gpus[0].total_mib, 4096u);
}

TEST(NvidiaSmi, KeepsTwoRunsApart) {
  NvidiaSmi smi = smi_of(
      "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n"
      "|   0  Tesla T4            Off  | 00000000:00:1E.0 Off |                    0 |\n"
      "in the container:\n"
      "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: N/A      |\n"
      "|   0  Tesla T4            Off  | 00000000:00:1E.0 Off |                    0 |\n");
  ASSERT_EQ(smi.runs.size(), 2u);
  EXPECT_EQ(smi.runs[1].cuda, "N/A");
  EXPECT_EQ(smi.runs[1].gpus.size(), 1u);
}

TEST(NvidiaSmi, ReadsTheListTheQueryAndCsv) {
  NvidiaSmi list = smi_of(
      "$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n"
      "  MIG 1g.5gb     Device  0: (UUID: MIG-2)\nGPU 1: Tesla T4\nGPU 2: loss is 3.5\n");
  ASSERT_EQ(list.runs.at(0).gpus.size(), 2u);
  EXPECT_EQ(list.runs[0].gpus[0].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(list.runs[0].gpus[0].mig_devices.at(0).profile, "1g.5gb");
  EXPECT_EQ(list.runs[0].gpus[1].name, "Tesla T4");
  NvidiaSmi query = smi_of(
      "Driver Version                            : 535.54.03\n"
      "CUDA Version                              : 12.2\nGPU 00000000:01:00.0\n"
      "    Product Name                          : NVIDIA GeForce RTX 3090\n"
      "    FB Memory Usage\n        Total                             : 24576 MiB\n"
      "        Used                              : 10 MiB\n"
      "    BAR1 Memory Usage\n        Total                             : 256 MiB\n"
      "    Compute Mode                          : Default\n");
  ASSERT_EQ(query.runs.size(), 1u);
  EXPECT_EQ(query.runs[0].driver, "535.54.03");
  EXPECT_EQ(query.runs[0].cuda, "12.2");
  ASSERT_EQ(query.runs[0].gpus.size(), 1u);
  EXPECT_EQ(query.runs[0].gpus[0].name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(query.runs[0].gpus[0].total_mib, 24576u);
  NvidiaSmi csv = smi_of(
      "$ nvidia-smi --query-gpu=index,name,driver_version,memory.total,compute_cap --format=csv\n"
      "index, name, driver_version, memory.total [MiB], compute_cap\n"
      "0, NVIDIA H100 80GB HBM3, 550.54.15, 81559 MiB, 9.0\n"
      "1, NVIDIA H100 80GB HBM3, 550.54.15, [N/A], 9.0\nand, so, it, goes, on\n");
  ASSERT_EQ(csv.runs.size(), 1u);
  EXPECT_EQ(csv.runs[0].driver, "550.54.15");
  ASSERT_EQ(csv.runs[0].gpus.size(), 2u);
  EXPECT_EQ(csv.runs[0].gpus[0].total_mib, 81559u);
  EXPECT_FALSE(csv.runs[0].gpus[1].total_mib.has_value());
  EXPECT_EQ(csv.runs[0].gpus[1].compute_capability, "9.0");
  EXPECT_EQ(csv.runs[0].gpus[1].line, 4u);
}

TEST(NvidiaSmi, ProseIsNoTable) {
  EXPECT_TRUE(smi_of("NVIDIA-SMI has failed because it couldn't communicate with the driver.\n"
                     "| step | 12MiB / s |\nGPU: Tesla V100S\nname, value\nfoo, bar\n")
                  .runs.empty());
}

std::string first_gpu(std::string_view line) {
  std::vector<GpuWords> found = find_gpu_words(line);
  return found.empty() ? "" : found[0].name;
}

TEST(GpuWords, FindsBoardsAsPeopleWriteThem) {
  EXPECT_EQ(first_gpu("GPU: NVIDIA GeForce RTX 5090 (SM_120)"), "NVIDIA GeForce RTX 5090");
  EXPECT_EQ(first_gpu("GPU: RTX3090"), "RTX3090");
  EXPECT_EQ(first_gpu("gtx3090, cuda=11.0"), "gtx3090");
  EXPECT_EQ(first_gpu("Win11, 5070Ti, CUDA 12.8"), "5070Ti");
  EXPECT_EQ(first_gpu("aerial images, single 3090 Ti"), "3090 Ti");
  EXPECT_EQ(first_gpu("\xE6\x88\x91\xE6\x98\xAF" "5060ti16g, torch 2.6"), "5060ti");
  EXPECT_EQ(first_gpu("RTX4070SUPER12GB"), "RTX4070SUPER");
  EXPECT_EQ(first_gpu("model 5060ti16gx"), "");
  EXPECT_EQ(first_gpu("2x RTX PRO 6000 Blackwell, no NVLink"), "RTX PRO 6000 Blackwell");
  EXPECT_EQ(first_gpu("Found GPU0 GeForce GTX 660 Ti which is"), "GeForce GTX 660 Ti");
  EXPECT_EQ(first_gpu("Found GPU0 GeForce GTX 960M which is"), "GeForce GTX 960M");
  EXPECT_EQ(first_gpu("Fedora 34, RTX 2060 Super; About"), "RTX 2060 Super");
  EXPECT_EQ(first_gpu("kernel 6.13.4, RTX 3080 Laptop"), "RTX 3080 Laptop");
  EXPECT_EQ(first_gpu("|   0  TITAN X (Pascal)    Off  |"), "TITAN X (Pascal)");
  EXPECT_EQ(first_gpu("Tesla V100-SXM2-16GB"), "Tesla V100-SXM2-16GB");
  EXPECT_EQ(first_gpu("NVIDIA Jetson AGX Orin, L4T R35.4.1"), "NVIDIA Jetson AGX Orin");
  EXPECT_EQ(first_gpu("vLLM on a DGX Spark (GB10, SM12.1)"), "GB10");
  EXPECT_EQ(first_gpu("Quadro P2000 and more"), "Quadro P2000");
  EXPECT_EQ(first_gpu("GeForce 940MX"), "GeForce 940MX");
  EXPECT_EQ(first_gpu("RTX 6000 Ada Generation"), "RTX 6000 Ada Generation");
  EXPECT_EQ(first_gpu("RTX A6000"), "RTX A6000");
}

TEST(GpuWords, CountsAndMemory) {
  EXPECT_EQ(find_gpu_words("4x Tesla T4 per node").at(0).count, 4u);
  EXPECT_EQ(find_gpu_words("8xH100 node").at(0).count, 8u);
  EXPECT_EQ(find_gpu_words("4 GeForce RTX 2080").at(0).count, 4u);
  EXPECT_EQ(find_gpu_words("two A800 80 GB, batch 1").at(0).count, 2u);
  EXPECT_EQ(find_gpu_words("two A800 80 GB, batch 1").at(0).memory_gb, 80u);
  EXPECT_EQ(find_gpu_words("A100 40GB").at(0).memory_gb, 40u);
  EXPECT_EQ(find_gpu_words("A100 x 8").at(0).count, 8u);
  EXPECT_EQ(find_gpu_words("NVIDIA A10 and Tesla T4").size(), 2u);
}

TEST(GpuWords, OtherWordsAreNoBoards) {
  EXPECT_EQ(first_gpu("batch 4096, 1920x1080, lr 1080, a10 = t4"), "");
  EXPECT_EQ(first_gpu("| 30%   37C    P4   16W / 450W |"), "");
  EXPECT_EQ(first_gpu("L4T R35.4.1, GTK 3, port 3090, MI250, RX 7900"), "");
  EXPECT_EQ(first_gpu("nvidia-smi, tesla, titan, geforce"), "");
}

}  // namespace nvidia_smi_test
TEST(NvidiaSmi, HeadingsAreNoRows) {
  EXPECT_TRUE(is_smi_heading(
      "| GPU  Name                 Persistence-M | Bus-Id  Disp.A | Volatile Uncorr. ECC |"));
  EXPECT_TRUE(is_smi_heading(
      "| Fan  Temp   Perf    Pwr:Usage/Cap |   Memory-Usage | GPU-Util  Compute M. |"));
  EXPECT_TRUE(is_smi_heading("|                                   |                | MIG M. |"));
  EXPECT_TRUE(is_smi_heading("|  GPU   GI   CI      PID   Type   Process name      GPU Memory |"));
  EXPECT_FALSE(is_smi_heading("|   0  Tesla T4   Off | 00000000:00:1E.0 Off |  2 |"));
  EXPECT_FALSE(is_smi_heading("nvidia-smi: Volatile Uncorr. ECC 12"));
}

}  // namespace cufit::formats
