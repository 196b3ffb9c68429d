// SPDX-License-Identifier: Apache-2.0
// --deep: what lies between a GPU and the processor: the IOMMU's way with it, and the bridges above
// it with their ACS.
#include "formats/system/pci_config.h"
#include "host/files/file_facts.h"
#include "host/probe.h"

namespace cufit::host {
namespace {

const std::string k_functions = "/sys/bus/pci/devices/";
constexpr size_t k_most_bridges = 32, k_config_bytes = 4096;

// "0000:01:00.0"
bool is_pci_address(std::string_view name) {
  if (name.size() < 12) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const size_t end = name.size() - i;  // the domain may have more than four digits
    const bool mark = end == 8 || end == 5 ? c == ':' : end == 2 && c == '.';
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (end == 8 || end == 5 || end == 2 ? !mark : !digit) return false;
  }
  return true;
}

Fact<std::string> read_iommu(const Host& host, const std::string& folder) {
  const std::string group = folder + "/iommu_group";
  if (!host.exists(group))
    return missing<std::string>(WhyNot::not_present, SourceKind::file, group);
  // Kernels before 4.19 have groups without a type.
  return line_fact(host, group + "/type");
}

Fact<std::string> read_acs(const Host& host, const std::string& address) {
  const std::string path = k_functions + address + "/config";
  const Result<std::string> config = host.read_head(path, k_config_bytes);
  if (!config) return missing_file<std::string>(config.error(), path);
  const formats::AcsControl acs = formats::parse_acs(*config);
  if (acs.state == formats::AcsState::unreadable)
    return missing<std::string>(WhyNot::no_permission, SourceKind::file, path,
                                "only root may read the capabilities of a bridge");
  if (acs.state == formats::AcsState::none)
    return missing<std::string>(WhyNot::not_supported, SourceKind::file, path);
  return known(formats::acs_text(acs.on), SourceKind::file, path);
}

}  // namespace

void read_gpu_paths(const Host& host, facts::Facts& facts) {
  if (!facts.pci) return;
  for (facts::PciGpu& gpu : *facts.pci.value) {
    if (!starts_with(gpu.class_code, "03")) continue;
    const std::string folder = k_functions + gpu.address;
    gpu.iommu = read_iommu(host, folder);
    // "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    const Result<std::string> real = host.real_path(folder);
    if (!real) continue;
    for (const std::string_view part : split(*real, '/')) {
      if (!is_pci_address(part) || part == gpu.address) continue;
      if (gpu.bridges.size() >= k_most_bridges) break;
      facts::PciBridge& bridge = gpu.bridges.emplace_back();
      bridge.address = std::string(part);
      bridge.acs = read_acs(host, bridge.address);
    }
  }
}

}  // namespace cufit::host
