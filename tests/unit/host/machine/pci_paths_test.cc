// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "host/probe.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace pci_paths_test {

// A root port with ACS on, a switch port that only root may read, and a GPU below.
void describe(test::FakeRoot& root, const std::string& type) {
  const std::string port = "/sys/devices/pci0000:00/0000:00:01.0";
  const std::string down = port + "/0000:01:00.0", gpu = down + "/0000:02:00.0";
  std::string config(4096, '\0');
  const std::string acs("\x0d\x00\x01\x00\x5f\x00\x1d\x00", 8);
  config.replace(0x100, acs.size(), acs);
  root.file(port + "/config", config);
  root.file(down + "/config", std::string(64, '\0'));
  root.file(gpu + "/vendor", "0x10de\n").file(gpu + "/device", "0x2330\n");
  root.file(gpu + "/class", "0x030200\n");
  if (!type.empty()) root.file(gpu + "/iommu_group/type", type + "\n");
  for (const std::string& folder : {port, down, gpu})
    root.link("/sys/bus/pci/devices/" + folder.substr(folder.rfind('/') + 1),
              "../../../.." + folder);
}

facts::PciGpu read(const test::FakeRoot& root) {
  facts::Facts facts;
  read_pci(root.host(), facts);
  EXPECT_TRUE(facts.pci && facts.pci->size() == 1);
  EXPECT_FALSE(facts.pci->at(0).iommu) << "asked without --deep";
  read_gpu_paths(root.host(), facts);
  return facts.pci->at(0);
}

TEST(PciPaths, BridgesFromTheRootDown) {
  test::FakeRoot root;
  describe(root, "DMA-FQ");
  const facts::PciGpu gpu = read(root);
  EXPECT_EQ(gpu.iommu.value_or(""), "DMA-FQ");
  ASSERT_EQ(gpu.bridges.size(), 2u);
  EXPECT_EQ(gpu.bridges[0].address, "0000:00:01.0");
  EXPECT_EQ(gpu.bridges[0].acs.value_or(""), "SrcValid ReqRedir CmpltRedir UpstreamFwd");
  EXPECT_EQ(gpu.bridges[1].address, "0000:01:00.0");
  EXPECT_EQ(gpu.bridges[1].acs.why, WhyNot::no_permission);
}

TEST(PciPaths, WithoutAnIommu) {
  test::FakeRoot root;
  describe(root, "");
  EXPECT_EQ(read(root).iommu.why, WhyNot::not_present);
}

}  // namespace pci_paths_test
}  // namespace cufit::host
