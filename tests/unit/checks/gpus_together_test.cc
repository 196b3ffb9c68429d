// SPDX-License-Identifier: Apache-2.0
// Two GPUs that work together, and the same with one thing wrong.
#include <gtest/gtest.h>

#include "checks/gpu_links.h"
#include "checks/machine_checks.h"
#include "checks/report_sections.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace gpus_together_test {

using namespace world;

template <class T>
Fact<T> nvml(T value) {
  return known(std::move(value), SourceKind::nvml, "test");
}
template <class T>
Fact<T> ran(T value) {
  return known(std::move(value), SourceKind::command, "/env/bin/python");
}

World two(const std::string& name, const std::string& cc) {
  World world;
  for (uint32_t i = 0; i < 2; ++i) {
    world.gpu(name, cc);
    facts::NvmlGpu& gpu = world.facts.nvml.gpus.back();
    gpu.pcie_gen = nvml(uint32_t{1}), gpu.pcie_gen_max = nvml(uint32_t{4});
    gpu.pcie_width = nvml(uint32_t{16});
    gpu.peers.push_back({1 - i, nvml<std::string>("hostbridge"), nvml<std::string>("ok"), {}});
    facts::CudaDevice& device = world.facts.cuda.devices.emplace_back();
    device.ordinal = i;
    device.pci_address = gpu.pci_address;
    device.peers.push_back({1 - i, nvml(true)});
    facts::PciGpu pci = pci_gpu(i, "2330");
    pci.iommu = missing<std::string>(WhyNot::not_present, SourceKind::file, "iommu_group");
    pci.bridges.push_back({"0000:00:01.0", file<std::string>("off", "config")});
    world.facts.pci.value->push_back(pci);
  }
  facts::TogetherFacts& together = world.facts.together;
  together.sum = ran<std::string>("ok"), together.copies = ran<std::string>("ok");
  together.ranks = 2, together.nccl = "2.28.9", together.env = "/env";
  together.sum_bytes = ran(uint64_t{1} << 30);
  together.copy_bytes = ran(uint64_t{1} << 28);
  together.small_seconds = ran(15e-6);
  return world;
}

World two_h100() {
  World world = two("NVIDIA H100 80GB HBM3", "9.0");
  for (facts::NvmlGpu& gpu : world.facts.nvml.gpus) {
    gpu.nvlinks_active = gpu.nvlinks_total = nvml(uint32_t{18});
    gpu.nvlink_version = nvml(uint32_t{6});
    gpu.nvlink_mbps = nvml(uint32_t{26562});
    gpu.nvlink_remotes = nvml(std::vector<std::string>(18, "switch"));
    gpu.peers[0].p2p_nvlink = nvml<std::string>("ok");
  }
  world.facts.together.via = {"P2P/CUMEM"};
  world.facts.together.bus_bytes_per_second = ran(340e9);
  world.facts.together.pairs = {{0, 1, 380e9, ""}, {1, 0, 370e9, ""}};
  return world;
}

World two_4090() {
  World world = two("NVIDIA GeForce RTX 4090", "8.9");
  world.facts.together.via = {"SHM/direct/direct"};
  world.facts.together.bus_bytes_per_second = ran(9e9);
  for (facts::NvmlGpu& gpu : world.facts.nvml.gpus)
    gpu.peers[0].p2p = nvml<std::string>("gpu_not_supported");
  for (facts::CudaDevice& device : world.facts.cuda.devices) device.peers[0].access = nvml(false);
  return world;
}

// Under one PCIe switch, with peer access.
World two_a100_pcie() {
  World world = two("NVIDIA A100 80GB PCIe", "8.0");
  world.facts.together.via = {"P2P/IPC"};
  world.facts.together.bus_bytes_per_second = ran(22e9);
  return world;
}

Texts found(const World& world) { return brief(run(check_gpus_together, world)); }

std::vector<Link> rows(const World& world) {
  return list_together(make_input(world.facts, knowledge::Knowledge::builtin()));
}
Texts row_texts(const World& world) {
  Texts out;
  for (const Link& row : rows(world)) out.push_back(row.key + "/" + to_string(row.state));
  return out;
}

TEST(GpusTogether, TwoH100AreFine) {
  const World world = two_h100();
  EXPECT_EQ(found(world), Texts{});
  EXPECT_EQ(row_texts(world), (Texts{"together.access.ok/ok", "together.links.nvlink/ok",
                                     "together.copies.ok/ok", "together.sum.ok/ok",
                                     "together.speed.share_via/ok", "together.detours.off/ok"}));
  const Link speed = rows(world)[4];
  EXPECT_EQ(speed.args.at("allowed"), "478 GB/s");
  EXPECT_EQ(speed.args.at("percent"), "71");
}

TEST(GpusTogether, NobodyAsked) {
  World world;
  world.gpu("NVIDIA H100 80GB HBM3", "9.0");
  EXPECT_EQ(found(world), Texts{});
  EXPECT_TRUE(rows(world).empty());
}

TEST(GpusTogether, AWrongSum) {
  World world = two_h100();
  world.facts.together.sum = ran<std::string>("wrong");
  world.facts.together.said = "rank 1: 1 of 2 values are wrong: value 1 is 4 instead of 3";
  EXPECT_EQ(found(world), Texts{"gpu_exchange_wrong/error"});
  world.facts.variables.push_back({"NCCL_P2P_DISABLE", "1"});
  EXPECT_EQ(found(world), (Texts{"gpu_exchange_wrong/error/p2p_off"}));
}

TEST(GpusTogether, CopiesThatArriveChangedUnderAnIommu) {
  World world = two_a100_pcie();
  world.facts.together.copies = ran<std::string>("wrong");
  for (facts::PciGpu& gpu : *world.facts.pci.value)
    gpu.iommu = file<std::string>("DMA-FQ", "iommu_group/type");
  EXPECT_EQ(found(world),
            (Texts{"gpu_exchange_wrong/error/copy", "nccl_p2p_iommu_acs/error/deep"}));
  const Report report = examine(world.facts, knowledge::Knowledge::builtin());
  const auto root = std::find_if(report.findings.begin(), report.findings.end(),
                                 [](auto& one) { return one.id == "nccl_p2p_iommu_acs"; });
  ASSERT_NE(root, report.findings.end());
  EXPECT_EQ(root->consequences, Texts{"gpu_exchange_wrong"});
  EXPECT_EQ(root->args.at("list"), "IOMMU: DMA-FQ");
}

TEST(GpusTogether, AnIommuThatPassesAddressesOnIsNoCause) {
  World world = two_a100_pcie();
  world.facts.together.copies = ran<std::string>("wrong");
  for (facts::PciGpu& gpu : *world.facts.pci.value)
    gpu.iommu = file<std::string>("identity", "iommu_group/type");
  EXPECT_EQ(found(world), Texts{"gpu_exchange_wrong/error/copy"});
}

TEST(GpusTogether, AHang) {
  World world = two_h100();
  facts::TogetherFacts& together = world.facts.together;
  together.sum = ran<std::string>("hung");
  together.said = "rank 0: sum of 8 bytes; rank 1: sum of 8 bytes";
  EXPECT_EQ(found(world), Texts{"gpu_exchange_failed/error"});
  world.facts.variables.push_back({"NCCL_P2P_LEVEL", "SYS; rm -rf /"});
  const std::vector<Finding> findings = run(check_gpus_together, world);
  EXPECT_EQ(brief(findings), Texts{"gpu_exchange_failed/error/variables"});
  EXPECT_EQ(findings[0].args.at("without"), "-u NCCL_P2P_LEVEL");
}

TEST(GpusTogether, AHangBeforeTheStartAccusesNobody) {
  World world = two_h100();
  world.facts.together.sum = ran<std::string>("hung");
  world.facts.together.said = "rank 0: import of torch; rank 1: import of torch";
  EXPECT_EQ(found(world), Texts{"gpu_exchange_failed/unknown"});
}

// NCCL may go another way, a program that copies itself does not.
TEST(GpusTogether, ACopyThatFailsIsSaidBesideASumThatDoesNot) {
  World world = two_h100();
  world.facts.together.copies = ran<std::string>("failed");
  world.facts.together.copies_said =
      "copies, copy from 0 to 1: RuntimeError: CUDA error: mapping of buffer object failed";
  EXPECT_EQ(found(world), Texts{"gpu_exchange_failed/error/copy"});
  world.facts.together.copies_said = "copies, memory for the copies: RuntimeError: no free memory";
  EXPECT_EQ(found(world), Texts{});
}

TEST(GpusTogether, WhatNcclSaysDecides) {
  World world = two_h100();
  facts::TogetherFacts& together = world.facts.together;
  together.sum = ran<std::string>("failed");
  together.said = "rank 1, sum of 8 bytes: RuntimeError: NCCL error";
  together.warning =
      "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-aB3 (size 5242880)";
  EXPECT_EQ(found(world), Texts{"gpu_exchange_failed/error/shm"});
  world.facts.system.container = file<std::string>("docker", "/.dockerenv");
  EXPECT_EQ(found(world), Texts{"gpu_exchange_failed/error/shm_container"});
  together.warning = "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-aB3";
  EXPECT_EQ(found(world), (Texts{"gpu_exchange_failed/error", "nccl_shm_attach/error"}));
  together.warning = "NCCL WARN Bootstrap : no socket interface found";
  world.facts.variables.push_back({"NCCL_SOCKET_IFNAME", "eth7"});
  together.interfaces = {"lo", "ens3"};
  EXPECT_EQ(found(world), (Texts{"gpu_exchange_failed/error", "nccl_network_config/error"}));
}

TEST(GpusTogether, SlowWithAcsOn) {
  World world = two_a100_pcie();
  EXPECT_EQ(found(world), Texts{});
  world.facts.together.bus_bytes_per_second = ran(6e9);
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/warning"});
  for (facts::PciGpu& gpu : *world.facts.pci.value)
    gpu.bridges[0].acs = file<std::string>("SrcValid ReqRedir CmpltRedir UpstreamFwd", "config");
  EXPECT_EQ(found(world), (Texts{"gpu_exchange_slow/warning", "nccl_p2p_iommu_acs/warning/deep"}));
}

TEST(GpusTogether, HalfOfTheLinksIsTheLimit) {
  World world = two_a100_pcie();  // 16 lanes of 1969 MB/s
  world.facts.together.bus_bytes_per_second = ran(15.8e9);
  EXPECT_EQ(found(world), Texts{});
  world.facts.together.bus_bytes_per_second = ran(15.7e9);
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/warning"});
  world.facts.together.sum_bytes = ran(uint64_t{1} << 20);  // too little to judge links by
  EXPECT_EQ(found(world), Texts{});
}

TEST(GpusTogether, CardsWithoutPeerAccessAreSoldSo) {
  World world = two_4090();
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/note/no_peer"});
  EXPECT_EQ(row_texts(world)[0], "together.access.none/limited");
  EXPECT_EQ(rows(world)[0].args.at("pairs"), "0-1");
}

TEST(GpusTogether, OtherReasonsToBeSlow) {
  World world = two_a100_pcie();
  world.facts.together.bus_bytes_per_second = ran(6e9);
  for (facts::NvmlGpu& gpu : world.facts.nvml.gpus)
    gpu.peers[0].topology = nvml<std::string>("system");
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/warning/numa"});
  world.facts.together.via = {"SHM/direct/direct"};
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/warning/not_direct"});
  facts::GpuProcess process;
  process.pid = 7, process.name = "python";
  world.facts.nvml.gpus[1].processes = nvml(std::vector<facts::GpuProcess>{process});
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/warning/busy"});
  world.facts.variables.push_back({"NCCL_ALGO", "Tree"});
  EXPECT_EQ(found(world), Texts{"gpu_exchange_slow/warning/variables"});
}

TEST(GpuLinks, OfABridgeBetweenTwoAndOfWrongVersions) {
  World world = two_h100();
  const auto links = [&] {
    return group_links(make_input(world.facts, knowledge::Knowledge::builtin()));
  };
  for (uint32_t i = 0; i < 2; ++i) {
    facts::NvmlGpu& gpu = world.facts.nvml.gpus[i];
    gpu.nvlink_mbps = {};
    gpu.nvlink_version = nvml(uint32_t{7});  // as some drivers call Hopper's
    // Twelve links lead to the other GPU and six to one that CUDA does not show.
    std::vector<std::string> ends(12, i == 0 ? "0000:02:00.0" : "0000:01:00.0");
    ends.insert(ends.end(), 6, "0000:09:00.0");
    gpu.nvlink_remotes = nvml(ends);
  }
  EXPECT_TRUE(links().nvlink);
  EXPECT_EQ(links().links, 12u);
  EXPECT_EQ(links().link_mbps, 25000u);
  world.facts.nvml.gpus[1].nvlink_remotes = nvml(std::vector<std::string>{});
  world.facts.nvml.gpus[1].peers[0].p2p_nvlink = nvml<std::string>("not_supported");
  EXPECT_FALSE(links().nvlink) << "one direction alone is no way";
  EXPECT_EQ(links().gen, 4u);
}

TEST(GpusTogether, ABrokenSumLimitsTheVerdict) {
  World world = two_h100();
  world.driver("580.95.05").cuinit(0).env(torch_env("2.11.0", "cu130", "13.0", k_cu130));
  for (facts::CudaDevice& device : world.facts.cuda.devices)
    device.compute_check = nvml<std::string>("ok");
  const LinkState before = examine(world.facts, knowledge::Knowledge::builtin()).verdict;
  world.facts.together.sum = ran<std::string>("wrong");
  const LinkState after = examine(world.facts, knowledge::Knowledge::builtin()).verdict;
  EXPECT_EQ(to_string(after), before == LinkState::ok ? std::string("limited") : to_string(before));
}

}  // namespace gpus_together_test
}  // namespace cufit::checks
