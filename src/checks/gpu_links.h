// SPDX-License-Identifier: Apache-2.0
// How the GPUs that CUDA shows reach each other, of the facts of --deep: what their links allow, and
// what may stand in the way. Answers only; no findings.
#pragma once

#include <string>
#include <vector>

#include "checks/check.h"

namespace cufit::checks {

// One GPU seen from another one.
struct GpuWay {
  const GpuView* from = nullptr;
  const GpuView* to = nullptr;
  uint32_t nvlinks = 0;                   // that lead from one to the other
  const facts::CudaPeer* cuda = nullptr;  // null: not asked
  const facts::NvmlPeer* nvml = nullptr;
};

// What a sum over all GPUs can move through each link, in one direction.
struct GroupLinks {
  bool nvlink = false;
  double bytes_per_second = 0;        // 0: the facts do not say
  uint32_t links = 0, link_mbps = 0;  // of NVLink; of several numbers the least
  std::string version;                // "4"
  uint32_t gen = 0, width = 0;        // of PCIe
  std::vector<Evidence> evidence;
};

// The IOMMU and the bridges of the GPUs' PCI paths.
struct PciObstacles {
  std::vector<std::string> iommu;       // "DMA-FQ": addresses are translated
  std::vector<std::string> acs;         // bridges whose ACS redirects: "0000:00:01.0"
  std::vector<std::string> unreadable;  // bridges that nobody could ask
  bool read = false;                    // something was
  std::vector<Evidence> evidence;       // of iommu and acs
};

// In CUDA's order.
std::vector<const GpuView*> gpus_of_cuda(const Input& input);
std::vector<GpuWay> gpu_ways(const Input& input);
GroupLinks group_links(const Input& input);
PciObstacles pci_obstacles(const Input& input);

// "26.6 GB/s": decimal, as vendors give links.
std::string speed_text(double bytes_per_second);
// "18x NVLink 4", "PCIe 4 x16".
std::string links_text(const GroupLinks& links);

}  // namespace cufit::checks
