// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/domain_usage.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace domain_usage_test {

constexpr uint64_t k_mib = 1024 * 1024;

facts::LiveDomain domain(std::vector<std::pair<uint32_t, uint64_t>> processes) {
  facts::LiveDomain out;
  formats::QuotaDevice device;
  device.uuid = "GPU-a", device.pci = "0000:65:00.0", device.limit_bytes = 1000 * k_mib;
  for (const auto& [pid, bytes] : processes) {
    formats::QuotaProcess process;
    process.pid = pid;
    process.used_bytes = {bytes};
    device.used_bytes += bytes;
    out.domain.processes.push_back(process);
    out.elsewhere.push_back(false);
  }
  out.domain.devices.push_back(device);
  return out;
}

facts::Facts nvml(std::vector<std::pair<uint32_t, uint64_t>> processes) {
  facts::Facts out;
  facts::NvmlGpu gpu;
  gpu.index = 3;
  gpu.uuid = known<std::string>("GPU-a", SourceKind::nvml, "");
  std::vector<facts::GpuProcess> listed;
  for (const auto& [pid, bytes] : processes)
    listed.push_back({pid, "", known(bytes, SourceKind::nvml, ""), "compute"});
  gpu.processes = known(listed, SourceKind::nvml, "");
  out.nvml.gpus.push_back(gpu);
  return out;
}

DeviceUsage first(const facts::LiveDomain& live, const facts::Facts& facts) {
  return domain_usage({{live}, {}}, facts).at(0).devices.at(0);
}

TEST(DomainUsage, NvmlsFigureIsOfTheDomainsProcessesAlone) {
  const DeviceUsage usage = first(domain({{7, 100 * k_mib}, {8, 50 * k_mib}}),
                                  nvml({{7, 110 * k_mib}, {8, 50 * k_mib}, {9, 700 * k_mib}}));
  EXPECT_EQ(usage.index, 3u);
  EXPECT_EQ(usage.used_bytes, 150 * k_mib);
  EXPECT_EQ(usage.nvml_bytes, 160 * k_mib);
}

// A sum that lacks a process would be a difference that is none.
TEST(DomainUsage, NoFigureWhereOneProcessIsMissing) {
  EXPECT_EQ(first(domain({{7, k_mib}, {8, k_mib}}), nvml({{7, k_mib}})).no_nvml, NoNvml::unlisted);
  EXPECT_EQ(first(domain({{7, k_mib}}), {}).no_nvml, NoNvml::unanswered);
  EXPECT_EQ(first(domain({{7, 0}}), nvml({})).no_nvml, NoNvml::unasked);
  facts::Facts unsized_facts = nvml({{7, k_mib}});
  (*unsized_facts.nvml.gpus[0].processes.value)[0].used_bytes =
      missing<uint64_t>(WhyNot::not_supported, SourceKind::nvml, "");
  EXPECT_EQ(first(domain({{7, k_mib}}), unsized_facts).no_nvml, NoNvml::unsized);
  // The same number in another pid namespace is another process.
  facts::LiveDomain elsewhere = domain({{7, k_mib}});
  elsewhere.elsewhere[0] = true;
  EXPECT_EQ(first(elsewhere, nvml({{7, k_mib}})).no_nvml, NoNvml::unlisted);
}

// NVML numbers by PCI address; a card of another driver has no number.
TEST(DomainUsage, TheNumberWithoutNvml) {
  facts::Facts facts;
  std::vector<facts::PciGpu> gpus(4);
  const char* const addresses[] = {"0000:C1:00.0", "0000:17:00.0", "0000:65:00.0", "0000:01:00.0"};
  for (size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].address = addresses[i], gpus[i].class_code = "0302";
    gpus[i].driver = known<std::string>(i == 3 ? "vfio-pci" : "nvidia", SourceKind::file, "");
  }
  facts.pci = known(gpus, SourceKind::file, "");
  EXPECT_EQ(first(domain({{7, 1}}), facts).index, 1u);
  gpus.resize(2);  // the card is on no bus of this machine
  facts.pci = known(gpus, SourceKind::file, "");
  EXPECT_EQ(first(domain({{7, 1}}), facts).index, std::nullopt);
}

TEST(DomainUsage, TheLargestProcessFirst) {
  const DomainUsage usage = domain_usage({{domain({{7, 1}, {8, 5}, {9, 3}})}, {}}, {}).at(0);
  EXPECT_EQ(usage.processes[0].pid, 8u);
  EXPECT_EQ(usage.processes[2].pid, 7u);
}

}  // namespace domain_usage_test
}  // namespace cufit::resolve
