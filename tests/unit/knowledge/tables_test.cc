// SPDX-License-Identifier: Apache-2.0
// The tables agree with themselves: references exist, versions parse, orders hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace tables_test {

const Knowledge& tables() { return Knowledge::builtin(); }

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

TEST(Tables, GpusHaveCapabilitiesAndOneCapabilityPerPciId) {
  ASSERT_GT(tables().gpus.size(), 200u);
  std::map<std::string, std::string_view> cc_of;
  for (const Gpu& gpu : tables().gpus) {
    EXPECT_TRUE(parse_compute_capability(gpu.cc)) << gpu.name;
    EXPECT_GT(gpu.memory_gb, 0) << gpu.name;
    for (const std::string& id : split(gpu.pci_ids)) {
      EXPECT_EQ(id.size(), 4u) << gpu.name;
      EXPECT_TRUE(cc_of.emplace(id, gpu.cc).second || cc_of[id] == gpu.cc) << id << " " << gpu.name;
    }
  }
}

// A chip of `own_code` is an embedded one; 3.2 is older than the table of GPUs.
TEST(Tables, OwnCodeIsOfEmbeddedGpus) {
  ASSERT_EQ(tables().own_code.size(), 5u);
  for (const OwnCodeRow& row : tables().own_code) {
    EXPECT_TRUE(parse_compute_capability(row.cc)) << row.cc;
    size_t seen = 0;
    for (const Gpu& gpu : tables().gpus) {
      if (gpu.cc != row.cc) continue;
      EXPECT_EQ(gpu.segment, "embedded") << gpu.name;
      ++seen;
    }
    EXPECT_EQ(seen > 0, row.cc != "3.2") << row.cc;
  }
}

TEST(Tables, EveryGpuIsFoundByItsOwnNames) {
  for (const Gpu& gpu : tables().gpus) {
    for (std::string_view name : {gpu.name, gpu.nvml_name}) {
      const Gpu* found = tables().find_gpu(name);
      ASSERT_NE(found, nullptr) << name;
      EXPECT_EQ(found->cc, gpu.cc) << name;
    }
  }
}

TEST(Tables, PciBlocksAgreeWithTheProducts) {
  for (const PciBlock& block : tables().pci_blocks) {
    EXPECT_EQ(block.prefix.size(), 3u) << block.prefix;
    for (const Gpu& gpu : tables().gpus) {
      for (const std::string& id : split(gpu.pci_ids)) {
        if (id.compare(0, 3, block.prefix) == 0) {
          EXPECT_EQ(gpu.cc, block.cc) << id << " " << gpu.name;
        }
      }
    }
  }
}

TEST(Tables, ToolkitsAndTheirDriversAscend) {
  std::optional<Version> last, last_driver;
  for (const ToolkitRow& row : tables().toolkits) {
    const std::optional<Version> version = parse_version(row.version);
    ASSERT_TRUE(version) << row.version;
    if (last) {
      EXPECT_LT(*last, *version) << row.version;
    }
    last = version;
    if (row.linux_driver.empty()) continue;
    const std::optional<Version> driver = parse_version(row.linux_driver);
    ASSERT_TRUE(driver) << row.version;
    if (last_driver) {
      EXPECT_LE(*last_driver, *driver) << row.version;
    }
    last_driver = driver;
  }
}

TEST(Tables, BranchesAndPtxAscend) {
  for (size_t i = 1; i < tables().branches.size(); ++i) {
    const BranchRow &a = tables().branches[i - 1], &b = tables().branches[i];
    EXPECT_LT(a.branch, b.branch);
    EXPECT_LE(*parse_version(a.cuda), *parse_version(b.cuda)) << b.branch;
  }
  for (size_t i = 1; i < tables().ptx_isas.size(); ++i) {
    const PtxIsaRow &a = tables().ptx_isas[i - 1], &b = tables().ptx_isas[i];
    EXPECT_LT(*parse_version(a.isa), *parse_version(b.isa)) << b.isa;
    EXPECT_LE(*parse_version(a.cuda), *parse_version(b.cuda)) << b.isa;
  }
}

TEST(Tables, AToolkitsDriverIsOfABranchThatReportsIt) {
  for (const ToolkitRow& row : tables().toolkits) {
    if (row.linux_driver.empty()) continue;
    const std::optional<Version> cuda = tables().driver_cuda(*parse_version(row.linux_driver));
    ASSERT_TRUE(cuda) << row.version;
    const Version version = *parse_version(row.version);
    EXPECT_EQ(cuda->part(0), version.part(0)) << row.version;
    EXPECT_EQ(cuda->part(1), version.part(1)) << row.version;
  }
}

TEST(Tables, EveryCapabilityOfAServerOrDesktopGpuHasADriverWindow) {
  for (const Gpu& gpu : tables().gpus) {
    if (gpu.cc == "8.7") continue;  // Jetson Orin has its own driver
    EXPECT_NE(tables().find_window(*parse_compute_capability(gpu.cc)), nullptr) << gpu.name;
  }
}

TEST(Tables, WheelsReferToRowsThatExist) {
  std::set<std::string_view> sets;
  for (const ArchSet& set : tables().arch_sets) {
    EXPECT_TRUE(sets.insert(set.id).second) << set.id;
    for (const std::string& sm : split(set.sm)) EXPECT_TRUE(parse_compute_capability(sm)) << set.id;
    for (const std::string& sm : split(set.ptx))
      EXPECT_TRUE(parse_compute_capability(sm)) << set.id;
  }
  for (const WheelVariant& wheel : tables().wheel_variants) {
    const std::string name = std::string(wheel.torch) + "+" + std::string(wheel.tag);
    EXPECT_TRUE(sets.count(wheel.arch_set)) << name;
    EXPECT_NE(tables().find_torch(wheel.torch), nullptr) << name;
    const CudaTag* tag = tables().find_cuda_tag(wheel.tag);
    ASSERT_NE(tag, nullptr) << name;
    const Version torch = *parse_version(wheel.torch);
    const Version minor{{torch.part(0), torch.part(1)}};
    EXPECT_GE(minor, *parse_version(tag->first_torch)) << name;
    EXPECT_LE(minor, *parse_version(tag->last_torch)) << name;
  }
}

TEST(Tables, ReleasesAscendAndOfferTheirDefault) {
  std::optional<Version> last;
  for (const TorchRelease& release : tables().torch_releases) {
    const std::optional<Version> version = parse_version(release.version);
    ASSERT_TRUE(version) << release.version;
    if (last) {
      EXPECT_LT(*last, *version) << release.version;
    }
    last = version;
    if (*version < *parse_version("1.8.0")) continue;  // of these only the default is known
    const auto wheels = tables().wheels_of(release.version);
    EXPECT_FALSE(wheels.empty()) << release.version;
    if (release.default_linux_x86_64.empty()) continue;
    EXPECT_TRUE(std::any_of(wheels.begin(), wheels.end(), [&](const WheelVariant* wheel) {
      return wheel->tag == release.default_linux_x86_64;
    })) << release.version;
  }
}

TEST(Tables, ATagNeedsTheFloorOfItsFamily) {
  for (const CudaTag& tag : tables().cuda_tags) {
    const std::optional<Version> floor = tables().family_floor(parse_version(tag.cuda)->part(0));
    if (!floor) continue;
    EXPECT_EQ(*floor, *parse_version(tag.linux_min)) << tag.tag;
    // The runfile of 11.7.1 carries 515.65.01; PTX of 11.7 compiles from its first driver on.
    const std::optional<Version> ptx = tables().ptx_driver(*parse_version(tag.cuda));
    ASSERT_TRUE(ptx) << tag.tag;
    EXPECT_GE(*ptx, *floor) << tag.tag;
    if (tag.tag == "cu117") {
      EXPECT_EQ(*ptx, *parse_version("515.43.04"));
    }
  }
}

TEST(Tables, CodesAreUnique) {
  for (auto rows : {tables().cuda_codes, tables().nvml_codes}) {
    std::set<int> codes;
    std::set<std::string_view> names;
    for (const CodeRow& row : rows) {
      EXPECT_TRUE(codes.insert(row.code).second) << row.code;
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
    }
    EXPECT_GT(rows.size(), 25u);
  }
  std::set<uint32_t> xids;
  for (const XidRow& row : tables().xids) EXPECT_TRUE(xids.insert(row.number).second) << row.number;
}

}  // namespace tables_test
}  // namespace cufit::knowledge
