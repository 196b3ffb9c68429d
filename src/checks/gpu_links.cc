// SPDX-License-Identifier: Apache-2.0
#include "checks/gpu_links.h"

#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"

namespace cufit::checks {
namespace {

constexpr double k_mb = 1e6;
// nvmlNvlinkVersion_t: some drivers call Hopper's links version 5, which has twice the speed.
constexpr uint32_t k_nvlink_4 = 6, k_nvlink_5 = 7;

uint32_t count_ends(const GpuView& gpu, const std::string& end) {
  if (!gpu.nvml->nvlink_remotes) return 0;
  return static_cast<uint32_t>(
      std::count(gpu.nvml->nvlink_remotes->begin(), gpu.nvml->nvlink_remotes->end(), end));
}

// Links that lead straight to the other GPU, or to the switch between all.
uint32_t links_between(const GpuView& a, const GpuView& b, const facts::NvmlPeer* way,
                       size_t gpus) {
  if (a.nvml == nullptr || b.nvml == nullptr) return 0;
  if (const uint32_t switched = count_ends(a, "switch")) return switched;
  if (a.nvml->nvlink_remotes) {
    const uint32_t direct = b.nvml->pci_address ? count_ends(a, *b.nvml->pci_address) : 0;
    if (direct > 0) return direct;
  }
  // In a container the other end may be hidden. With two GPUs all links lead to the only other one.
  const bool reaches = way != nullptr && way->p2p_nvlink.value_or("") == "ok";
  return reaches && gpus == 2 ? a.nvml->nvlinks_active.value_or(0) : 0;
}

const knowledge::NvlinkRate* rate_row(const Input& input, const GpuView& gpu) {
  if (!gpu.nvml->nvlink_version) return nullptr;
  uint32_t version = *gpu.nvml->nvlink_version;
  if (version == k_nvlink_5 && gpu.cc && gpu.cc->text() == "9.0") version = k_nvlink_4;
  for (const knowledge::NvlinkRate& row : input.knowledge.nvlink_rates)
    if (row.nvml == version) return &row;
  return nullptr;
}

bool takes_nvlink(const Input& input, const GpuView& gpu, uint32_t links, GroupLinks& out) {
  const knowledge::NvlinkRate* row = rate_row(input, gpu);
  const Fact<uint32_t>& said = gpu.nvml->nvlink_mbps;
  const bool driver = said && *said > 0;
  if (!driver && row == nullptr) return false;
  const uint32_t mbps = driver ? *said : row->mbps;
  const double speed = double(links) * mbps * k_mb;
  if (out.bytes_per_second == 0 || speed < out.bytes_per_second) {
    out.bytes_per_second = speed;
    out.links = links, out.link_mbps = mbps;
    out.version = row != nullptr ? std::string(row->name) : std::string();
    out.evidence = {seen(gpu.nvml->nvlinks_active)};
    if (driver)
      out.evidence.push_back(seen(said));
    else
      out.evidence.push_back(
          table_says("data/links.toml", format("NVLink {}: {} MB/s", row->name, row->mbps)));
  }
  return true;
}

// Empty where not every pair has links.
GroupLinks nvlinks_of_all(const Input& input, const std::vector<const GpuView*>& gpus,
                          const std::vector<GpuWay>& ways) {
  GroupLinks out;
  out.nvlink = true;
  for (const GpuView* gpu : gpus) {
    uint32_t straight = 0, switched = 0;
    for (const GpuWay& way : ways) {
      if (way.from != gpu) continue;
      if (way.nvlinks == 0) return {};
      straight += way.nvlinks, switched = std::max(switched, way.nvlinks);
    }
    const bool by_switch = gpu->nvml != nullptr && count_ends(*gpu, "switch") > 0;
    if (gpu->nvml == nullptr || !takes_nvlink(input, *gpu, by_switch ? switched : straight, out))
      return {};
  }
  return out;
}

GroupLinks pcie_of_all(const Input& input, const std::vector<const GpuView*>& gpus) {
  GroupLinks out;
  for (const GpuView* gpu : gpus) {
    if (gpu->nvml == nullptr || !gpu->nvml->pcie_width) return {};
    // The generation falls while a GPU is idle; NVML's maximum is that of card and slot together.
    const Fact<uint32_t>& gen =
        gpu->nvml->pcie_gen_max ? gpu->nvml->pcie_gen_max : gpu->nvml->pcie_gen;
    const knowledge::PcieRate* rate = nullptr;
    for (const knowledge::PcieRate& row : input.knowledge.pcie_rates)
      if (gen && row.gen == *gen) rate = &row;
    if (rate == nullptr) return {};
    const uint32_t width = *gpu->nvml->pcie_width;
    const double speed = double(rate->mbps) * width * k_mb;
    if (out.bytes_per_second > 0 && speed >= out.bytes_per_second) continue;
    out.bytes_per_second = speed;
    out.gen = rate->gen, out.width = width;
    out.evidence = {seen(gen), seen(gpu->nvml->pcie_width),
                    table_says("data/links.toml",
                               format("PCIe {}: {} MB/s for a lane", rate->gen, rate->mbps))};
  }
  return out;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

bool redirects(const std::string& acs) {
  return contains(acs, "ReqRedir") || contains(acs, "CmpltRedir");
}

}  // namespace

std::vector<const GpuView*> gpus_of_cuda(const Input& input) {
  std::vector<const GpuView*> out;
  for (const GpuView& gpu : input.gpus)
    if (gpu.cuda != nullptr) out.push_back(&gpu);
  std::sort(out.begin(), out.end(),
            [](const GpuView* a, const GpuView* b) { return a->cuda->ordinal < b->cuda->ordinal; });
  return out;
}

std::vector<GpuWay> gpu_ways(const Input& input) {
  const std::vector<const GpuView*> gpus = gpus_of_cuda(input);
  std::vector<GpuWay> out;
  for (const GpuView* from : gpus) {
    for (const GpuView* to : gpus) {
      if (from == to) continue;
      GpuWay way{from, to, 0, nullptr, nullptr};
      for (const facts::CudaPeer& peer : from->cuda->peers)
        if (peer.ordinal == to->cuda->ordinal) way.cuda = &peer;
      if (from->nvml != nullptr && to->nvml != nullptr)
        for (const facts::NvmlPeer& peer : from->nvml->peers)
          if (peer.index == to->nvml->index) way.nvml = &peer;
      way.nvlinks = links_between(*from, *to, way.nvml, gpus.size());
      out.push_back(way);
    }
  }
  return out;
}

GroupLinks group_links(const Input& input) {
  const std::vector<const GpuView*> gpus = gpus_of_cuda(input);
  if (gpus.size() < 2) return {};
  GroupLinks nvlink = nvlinks_of_all(input, gpus, gpu_ways(input));
  return nvlink.bytes_per_second > 0 ? nvlink : pcie_of_all(input, gpus);
}

PciObstacles pci_obstacles(const Input& input) {
  PciObstacles out;
  for (const GpuView* gpu : gpus_of_cuda(input)) {
    if (gpu->pci == nullptr) continue;
    const Fact<std::string>& iommu = gpu->pci->iommu;
    out.read = out.read || iommu || iommu.why == WhyNot::not_present || !gpu->pci->bridges.empty();
    // "identity" is what iommu=pt gives: nothing is translated.
    if (iommu && starts_with(*iommu, "DMA")) {
      add_once(out.iommu, *iommu);
      out.evidence.push_back(seen(iommu));
    }
    for (const facts::PciBridge& bridge : gpu->pci->bridges) {
      if (bridge.acs && redirects(*bridge.acs)) {
        const size_t before = out.acs.size();
        add_once(out.acs, bridge.address);
        if (out.acs.size() > before) out.evidence.push_back(seen(bridge.acs));
      }
      if (!bridge.acs && bridge.acs.why == WhyNot::no_permission)
        add_once(out.unreadable, bridge.address);
    }
  }
  return out;
}

std::string speed_text(double bytes_per_second) {
  const double gb = bytes_per_second / 1e9;
  return gb >= 100 ? format("{:.0f} GB/s", gb) : format("{:.3g} GB/s", gb);
}

std::string links_text(const GroupLinks& links) {
  if (!links.nvlink) return format("PCIe {} x{}", links.gen, links.width);
  return format("{}x NVLink{}", links.links, links.version.empty() ? "" : " " + links.version);
}

}  // namespace cufit::checks
