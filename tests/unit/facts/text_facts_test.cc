// SPDX-License-Identifier: Apache-2.0
#include "facts/text_facts.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/places.h"

namespace cufit::facts {
namespace text_facts_test {

Facts facts_of(std::string_view text) {
  return facts_from_text(formats::plain_text_lines(text), "log.txt");
}
std::string torch_of(const Facts& facts) {
  return facts.envs.empty() ? "" : facts.envs[0].torch.version.value_or("");
}
std::string gpus_of(const Facts& facts) {
  std::vector<std::string> names;
  for (const NvmlGpu& gpu : facts.nvml.gpus)
    names.push_back(gpu.name.value_or("?") +
                    (gpu.compute_capability ? " " + *gpu.compute_capability : ""));
  return join(names, ", ");
}

TEST(TextFacts, AFewLinesOfAnIssueBecomeClaims) {
  Facts facts = facts_of(
      "Ubuntu 22.04.5 LTS, driver 570.124.06, 2x RTX 5090\n"
      "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current\n"
      "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_90.\n"
      "PyTorch: 2.6.0+cu124, Python 3.11.9\n>>> torch.cuda.is_available()\nFalse\n");
  EXPECT_EQ(facts.origin, "text");
  EXPECT_EQ(*facts.system.distribution, "Ubuntu 22.04.5");
  EXPECT_EQ(*facts.system.distribution_id, "ubuntu 22.04");
  EXPECT_EQ(*facts.nvml.driver_version, "570.124.06");
  EXPECT_EQ(facts.nvml.driver_version.source.kind, SourceKind::claimed);
  EXPECT_EQ(facts.nvml.driver_version.source.detail, "log.txt:1");
  EXPECT_EQ(gpus_of(facts), "NVIDIA GeForce RTX 5090 12.0, NVIDIA GeForce RTX 5090 12.0");
  ASSERT_EQ(facts.envs.size(), 1u);
  const PythonEnv& env = facts.envs[0];
  EXPECT_EQ(*env.python, "3.11.9");
  EXPECT_EQ(*env.torch.version, "2.6.0+cu124");
  EXPECT_EQ(env.torch.variant, "cu124");
  EXPECT_EQ(*env.torch.cuda, "12.4");
  EXPECT_EQ(*env.torch_run, "torch.cuda.is_available() is False");
  ASSERT_EQ(env.binaries.size(), 1u);
  EXPECT_EQ(env.binaries[0].device_code.size(), 3u);
  EXPECT_FALSE(facts.nvml.init_result);
}

TEST(TextFacts, ATableGivesOneGpuPerRow) {
  Facts facts = facts_of(
      "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |\n"
      "|   0  NVIDIA A100-SXM4-40GB   On  | 00000000:07:00.0 Off |  0 |\n"
      "| N/A   35C    P0    46W / 400W |    34MiB / 40960MiB |  0%   E. Process |\n"
      "|   1  Tesla V100-PCIE...      On  | 00000000:0F:00.0 Off |  0 |\n"
      "| Processes: |\n|    0   N/A  N/A      9871      C   python                 512MiB |\n"
      "The second one is a Tesla V100-PCIE-32GB.\n");
  EXPECT_EQ(*facts.nvml.driver_version, "550.54.15");
  EXPECT_EQ(*facts.nvml.cuda_version, 12040);
  EXPECT_EQ(*facts.nvml.init_result, 0);
  EXPECT_EQ(gpus_of(facts), "NVIDIA A100-SXM4-40GB, Tesla V100-PCIE-32GB");
  EXPECT_EQ(*facts.nvml.gpus[0].memory_total_bytes, uint64_t{40960} << 20);
  EXPECT_EQ(*facts.nvml.gpus[0].compute_mode, "exclusive_process");
  EXPECT_EQ(*facts.nvml.gpus[0].pci_address, "0000:07:00.0");
  EXPECT_EQ(facts.nvml.gpus[0].processes->at(0).pid, 9871u);
  EXPECT_EQ(facts.nvml.gpus[1].name.source.detail, "log.txt:7");
}

TEST(TextFacts, ContradictionsAreNotResolved) {
  Facts facts = facts_of(
      "host: NVIDIA-SMI 510.108.03   Driver Version: 510.108.03   CUDA Version: 11.6\n"
      "on the other PC: driver 535.54.03\ntorch 2.3.0 here, torch 2.4.1 there\n"
      "an RTX 3090 or an A100\nPython 3.10\n/usr/lib/python3.8/site-packages/x.py\n");
  EXPECT_FALSE(facts.nvml.driver_version);
  EXPECT_EQ(facts.nvml.driver_version.why, WhyNot::malformed);
  EXPECT_EQ(facts.nvml.driver_version.note, "line 1 says `510.108.03`, line 2 says `535.54.03`");
  EXPECT_TRUE(facts.nvml.gpus.empty());
  EXPECT_EQ(facts.nvml.gpu_count.note, "line 4 says `RTX 3090`, line 4 says `A100`");
  ASSERT_EQ(facts.envs.size(), 1u);
  EXPECT_EQ(facts.envs[0].torch.version.note, "line 3 says `2.3.0`, line 3 says `2.4.1`");
  EXPECT_EQ(*facts.envs[0].python, "3.10");
}

TEST(TextFacts, TheTextsOwnOrderDecides) {
  EXPECT_EQ(torch_of(facts_of("    Found existing installation: torch 2.3.1+cu118\n"
                              "      Successfully uninstalled torch-2.3.1+cu118\n"
                              " Successfully installed torch-2.3.0\n")),
            "2.3.0");
  Facts removed = facts_of("Name: torch\nVersion: 2.3.1\nSuccessfully uninstalled torch-2.3.1\n");
  EXPECT_EQ(torch_of(removed), "");
  EXPECT_EQ(torch_of(facts_of("torch==2.1.0\nPyTorch 2.1.0+cu121 with CUDA 1201 (you have "
                              "2.0.1+cu118)\n")),
            "2.0.1+cu118");
  EXPECT_EQ(torch_of(facts_of("pip install torch==1.9.1+cu111\n"
                              "ERROR: No matching distribution found for torch==1.9.1+cu111\n")),
            "");
  EXPECT_EQ(torch_of(facts_of("pip install torch==1.9.1+cu111\nit crashes\n")), "1.9.1+cu111");
}

TEST(TextFacts, ABranchIsNoDriverVersion) {
  Facts facts = facts_of("host driver: 525\n");
  EXPECT_FALSE(facts.nvml.driver_version);
  EXPECT_EQ(facts.nvml.driver_version.note, "line 1 says only the branch, `525`");
}

TEST(TextFacts, ADumpInsideAMixtureKeepsItsLines) {
  std::vector<formats::TextLine> lines = formats::plain_text_lines(
      "it fails\nPyTorch version: 2.1.0+cu121\nIs debug build: False\nCUDA used to build PyTorch: "
      "12.1\n"
      "OS: Ubuntu 22.04.3 LTS (x86_64)\nPython version: 3.10.12 (main)\nIs CUDA available: False\n"
      "GPU models and configuration: GPU 0: NVIDIA GeForce GTX 1080 Ti\nNvidia driver version: "
      "520.61.05\n\n[pip3] torch==2.1.0+cu121\n\nvllm 0.3.0\n"
      "Found GPU0 NVIDIA GeForce GTX 1080 Ti which is of cuda capability 6.1.\n");
  for (formats::TextLine& line : lines) line.number += 1000;  // the middle was thinned out
  Facts facts = facts_from_text(lines, "x");
  EXPECT_EQ(facts.envs.at(0).torch.version.source.detail, "x:1002");
  EXPECT_EQ(*facts.nvml.driver_version, "520.61.05");
  EXPECT_EQ(gpus_of(facts), "NVIDIA GeForce GTX 1080 Ti 6.1");
  EXPECT_EQ(facts.envs[0].distributions->size(), 2u);
}

TEST(TextFacts, KernelLinesVariablesAndLibraries) {
  Facts facts = facts_of(
      "[  12.345678] NVRM: Xid (PCI:0000:61:00): 79, pid=1, GPU has fallen off the bus.\n"
      "my NVIDIA card died\nexport NCCL_DEBUG=INFO\nexport HF_TOKEN=x\nCUDA_VISIBLE_DEVICES=0 "
      "python a.py\n"
      "CUDA_VISIBLE_DEVICES=1 python a.py\ndocker run --shm-size=16gb img\n"
      "\tlibnvJitLink.so.12 => /usr/local/cuda-12.1/lib64/libnvJitLink.so.12 (0x7)\n");
  ASSERT_TRUE(facts.kernel.log);
  EXPECT_EQ(facts.kernel.log->size(), 1u);
  EXPECT_EQ(facts.kernel.xids.at(0).number, 79u);
  ASSERT_EQ(facts.variables.size(), 1u);
  EXPECT_EQ(facts.variables[0].name, "NCCL_DEBUG");
  EXPECT_EQ(*facts.system.shm_bytes, uint64_t{16} << 30);
  EXPECT_FALSE(facts.system.container);
  ASSERT_EQ(facts.envs.at(0).loads.size(), 1u);
  EXPECT_FALSE(facts.envs[0].loads[0].inside);
}

TEST(TextFacts, ATextWithoutFactsHasNone) {
  Facts facts = facts_of("Traceback (most recent call last):\nValueError: no\n");
  EXPECT_TRUE(facts.envs.empty());
  EXPECT_TRUE(facts.nvml.gpus.empty());
  EXPECT_FALSE(facts.nvml.driver_version);
  EXPECT_TRUE(facts_from_text({}, "x").variables.empty());
}

// Evidence of real reports, where the collection lies beside the checkout.
std::map<std::string, std::string> corpus() {
  std::map<std::string, std::string> out;
  for (const char* name : {"env-open", "mem-open"}) {
    std::ifstream file(format("{}/../shared/corpus/{}.jsonl", cufit::test::source_dir(), name));
    for (std::string line; std::getline(file, line);) {
      size_t id = line.find("\"id\": \""), text = line.find("\"evidence\": \"");
      if (id == std::string::npos || text == std::string::npos) continue;
      std::string evidence;
      for (size_t i = text + 13; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] != '\\')
          evidence += line[i];
        else if (char c = line[++i]; c == 'n')
          evidence += '\n';
        else if (c == 't')
          evidence += '\t';
        else if (c == 'u')
          i += 4, evidence += '?';
        else
          evidence += c;
      }
      out[line.substr(id + 7, line.find('"', id + 7) - id - 7)] = evidence;
    }
  }
  return out;
}

struct Expected {
  const char *id, *torch, *driver, *gpus;
};

TEST(TextFacts, ReadsRealReports) {
  std::map<std::string, std::string> texts = corpus();
  if (texts.empty()) GTEST_SKIP() << "no corpus beside the checkout";
  const Expected all[] = {
      {"env-005", "2.6.0", "", ""},
      {"env-014", "", "470.57.02", "Tesla V100S"},
      {"env-022", "1.7", "460.27.04", ""},
      {"env-039", "", "510.108.03", "?"},
      {"env-050", "", "570.133.20", "NVIDIA A10, NVIDIA A10, Tesla T4, Tesla T4"},
      {"env-071", "", "", ""},
      {"env-072", "2.7.0.dev20250310+cu124", "570.124.06",
       "NVIDIA GeForce RTX 5090 12.0, NVIDIA GeForce RTX 5090 12.0"},
      {"env-076", "2.7.0+cu128", "", "NVIDIA GeForce GTX 1080 Ti 6.1, Tesla P100-PCIE-16GB 6.0"},
      {"env-091", "2.4.0+cu121", "", ""},
      {"env-102", "2.3.0", "", ""},
      {"env-108", "2.11.0", "570.86.10", ""},
      {"env-111", "1.13.1+cu117", "", ""},
      {"env-123", "1.9.0", "", ""},
      {"env-131", "", "470.141.03", "NVIDIA GeForce RTX 3060"},
      {"env-169", "", "375.39", "TITAN X (Pascal)"},
      {"env-221", "", "387.12", ""},
      {"env-227", "", "", ""},
      {"env-289", "", "535.129.03", "NVIDIA GeForce GT 710"},
      {"env-292", "2.0.1+cu118", "", ""},
      {"mem-014", "", "", ""},
      {"mem-068", "1.0.1", "", "Tesla P100-SXM2-16GB"},
  };
  for (const Expected& expected : all) {
    if (texts.count(expected.id) == 0) continue;
    Facts facts = facts_of(texts[expected.id]);
    EXPECT_EQ(torch_of(facts), expected.torch) << expected.id;
    EXPECT_EQ(facts.nvml.driver_version.value_or(""), expected.driver) << expected.id;
    EXPECT_EQ(gpus_of(facts), expected.gpus) << expected.id;
  }
}

}  // namespace text_facts_test
}  // namespace cufit::facts
