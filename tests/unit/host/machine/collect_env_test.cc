// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/machines.h"

namespace cufit::host {
namespace collect_env_test {

using namespace std::string_literals;
using test::FakeRoot;

std::string lines_of(const facts::CollectEnvFacts& facts) {
  std::string out;
  for (const facts::CpuLine& line : facts.cpu) out += line.label + "=" + line.value + "\n";
  return out;
}

void add_cpu(FakeRoot& root, int cpu, const std::string& core, const std::string& socket) {
  const std::string folder = format("/sys/devices/system/cpu/cpu{}/", cpu);
  root.file(folder + "topology/thread_siblings_list", core + "\n");
  root.file(folder + "topology/core_siblings_list", socket + "\n");
  struct Cache {
    const char *level, *type, *size;
  };
  int index = 0;
  for (const Cache& cache : {Cache{"1", "Data", "48K"}, Cache{"1", "Instruction", "32K"},
                             Cache{"2", "Unified", "1280K"}, Cache{"3", "Unified", "55296K"}}) {
    const std::string each = format("{}cache/index{}/", folder, index);
    root.file(each + "level", std::string(cache.level) + "\n")
        .file(each + "type", std::string(cache.type) + "\n");
    root.file(each + "size", std::string(cache.size) + "\n");
    root.file(each + "shared_cpu_list", (index == 3 ? socket : core) + "\n");
    ++index;
  }
}

// Two sockets, each of one core with two threads; a third CPU of socket 0 is off.
TEST(CollectEnvProbe, PrintsLscpusLines) {
  FakeRoot root;
  root.file("/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel "
            "name\t: Xeon\n"
            "stepping\t: 6\nflags\t\t: fpu vmx lm\nbogomips\t: 5799.78\n"
            "address sizes\t: 46 bits physical, 48 bits virtual\n\nprocessor\t: 1\nmodel\t\t: 1\n");
  root.file("/sys/devices/system/cpu/online", "0-3\n")
      .file("/sys/devices/system/cpu/present", "0-4\n");
  for (int cpu : {0, 2}) add_cpu(root, cpu, "0,2", "0,2");
  for (int cpu : {1, 3}) add_cpu(root, cpu, "1,3", "1,3");
  root.file("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  root.file("/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "5083398\n");
  root.file("/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq", "800000\n");
  for (int node : {0, 1, 10}) {
    root.file(format("/sys/devices/system/node/node{}/cpulist", node), node == 0   ? "0,2\n"
                                                                       : node == 1 ? "1,3\n"
                                                                                   : "\n");
  }
  root.file("/sys/devices/system/cpu/vulnerabilities/spectre_v2",
            "Mitigation: Retpolines; STIBP: disabled\n");
  root.file("/sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable: no microcode\n");
  facts::Facts facts;
  facts.system.architecture = known<std::string>("x86_64", SourceKind::file, "x");
  read_collect_env(root.host({}), facts);
  EXPECT_EQ(
      lines_of(facts.collect_env),
      "Architecture=x86_64\nCPU op-mode(s)=32-bit, 64-bit\nAddress sizes=46 bits physical, 48 bits "
      "virtual\n"
      "Byte Order=Little Endian\nCPU(s)=5\nOn-line CPU(s) list=0-3\nOff-line CPU(s) list=4\n"
      "Vendor ID=GenuineIntel\nModel name=Xeon\nCPU family=6\nModel=106\nThread(s) per core=2\n"
      "Core(s) per socket=1\nSocket(s)=2\nStepping=6\nFrequency boost=enabled\nCPU max "
      "MHz=5083.3979\n"
      "CPU min MHz=800.0000\nBogoMIPS=5799.78\nFlags=fpu vmx lm\nVirtualization=VT-x\n"
      "L1d cache=96 KiB (2 instances)\nL1i cache=64 KiB (2 instances)\nL2 cache=2.5 MiB (2 "
      "instances)\n"
      "L3 cache=108 MiB (2 instances)\nNUMA node(s)=3\nNUMA node0 CPU(s)=0,2\nNUMA node1 "
      "CPU(s)=1,3\n"
      "NUMA node10 CPU(s)=\nVulnerability Mds=Vulnerable: no microcode\n"
      "Vulnerability Spectre v2=Mitigation; Retpolines; STIBP disabled\n");
}

TEST(CollectEnvProbe, AnEmptyRootSaysNothing) {
  FakeRoot root;
  facts::Facts facts;
  read_collect_env(root.host({}), facts);
  EXPECT_EQ(lines_of(facts.collect_env), "");
  EXPECT_EQ(facts.collect_env.gcc.why, WhyNot::not_present);
  EXPECT_EQ(facts.collect_env.cmake.why, WhyNot::not_present);
  EXPECT_EQ(facts.collect_env.cudnn.why, WhyNot::not_present);
}

TEST(CollectEnvProbe, FindsVersionsOfTools) {
  FakeRoot root;
  root.file("/usr/local/cuda/bin/nvcc", "\0Cuda compilation tools, release 13.0, V13.0.88\n"s);
  root.file("/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py",
            "        if \"CUDA_MODULE_LOADING\" not in os.environ:\n"
            "            os.environ[\"CUDA_MODULE_LOADING\"] = \"LAZY\"\n");
  facts::Facts facts;
  facts::Toolkit toolkit;
  toolkit.path = "/usr/local/cuda";
  toolkit.nvcc = known<std::string>("/usr/local/cuda/bin/nvcc", SourceKind::file, "x");
  facts.toolkits = {toolkit};
  facts::PythonEnv env;
  env.torch.path = "/opt/venv/lib/python3.12/site-packages/torch";
  facts.envs = {env};
  read_collect_env(root.host({{"PATH", "/usr/bin"}}), facts);
  EXPECT_EQ(facts.toolkits[0].nvcc_version.value, "13.0.88");
  EXPECT_EQ(facts.envs[0].torch.module_loading.value, "LAZY");
  EXPECT_FALSE(facts.envs[0].torch.xnnpack);  // no libtorch_cpu.so: unknown, not False
  EXPECT_EQ(facts.envs[0].torch.xnnpack.why, WhyNot::not_present);
}

}  // namespace collect_env_test
}  // namespace cufit::host
