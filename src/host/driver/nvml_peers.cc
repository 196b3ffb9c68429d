// SPDX-License-Identifier: Apache-2.0
// --deep: the ways between GPUs, and what the NVLinks of one lead to.
#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "host/driver/nvml_calls.h"

namespace cufit::host {
namespace {

using namespace nvml;

Fact<std::string> name_of(Fact<uint32_t> number, const Named* begin, const Named* end) {
  if (!number)
    return missing<std::string>(number.why, number.source.kind, number.source.detail, number.note);
  const Named* row =
      std::find_if(begin, end, [&](const Named& one) { return one.value == *number; });
  return known<std::string>(row != end ? row->name : format("number {}", *number),
                            number.source.kind, number.source.detail);
}

Device handle_of(NvmlCalls& nvml, uint32_t index) {
  Device device = nullptr;
  const char* name = nullptr;
  const int result = nvml.call_any<int(uint32_t, Device*)>(
      {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, name, index, &device);
  return result == k_success ? device : nullptr;
}

Fact<std::string> p2p_status(NvmlCalls& nvml, Device a, Device b, uint32_t what) {
  const char* name = "nvmlDeviceGetP2PStatus";
  uint32_t status = 0;
  const int result = nvml.call<int(Device, Device, uint32_t, uint32_t*)>(name, a, b, what, &status);
  return name_of(nvml.answer(result, name, status), std::begin(k_p2p_states),
                 std::end(k_p2p_states));
}

facts::NvmlPeer ask_peer(NvmlCalls& nvml, Device a, Device b, uint32_t index) {
  facts::NvmlPeer peer;
  peer.index = index;
  const char* name = "nvmlDeviceGetTopologyCommonAncestor";
  uint32_t level = 0;
  const int result = nvml.call<int(Device, Device, uint32_t*)>(name, a, b, &level);
  peer.topology = name_of(nvml.answer(result, name, level), std::begin(k_topology_levels),
                          std::end(k_topology_levels));
  peer.p2p = p2p_status(nvml, a, b, k_p2p_read);
  peer.p2p_nvlink = p2p_status(nvml, a, b, k_p2p_nvlink);
  return peer;
}

// What is at the other end of a link: a switch, or a GPU by its address.
Fact<std::string> link_end(NvmlCalls& nvml, Device device, uint32_t link) {
  const char* name = "nvmlDeviceGetNvLinkRemoteDeviceType";
  uint32_t type = 0;
  int result = nvml.call<int(Device, uint32_t, uint32_t*)>(name, device, link, &type);
  if (result == k_success && type == k_remote_switch)
    return known<std::string>("switch", SourceKind::nvml, name);
  PciInfo pci{};
  result = nvml.call_any<int(Device, uint32_t, PciInfo*)>(
      {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"}, name, device,
      link, &pci);
  return nvml.answer(result, name,
                     format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device));
}

void ask_nvlinks(NvmlCalls& nvml, facts::NvmlGpu& gpu, Device device) {
  FieldValue field{};
  field.id = k_field_nvlink_speed;
  const char* name = "nvmlDeviceGetFieldValues";
  int result = nvml.call<int(Device, int, FieldValue*)>(name, device, 1, &field);
  if (result == k_success) result = field.result;
  gpu.nvlink_mbps = nvml.answer(result, name, static_cast<uint32_t>(field.value & 0xffffffffu));
  std::vector<std::string> ends;
  for (uint32_t link = 0; link < gpu.nvlinks_total.value_or(0); ++link) {
    uint32_t active = 0;
    name = "nvmlDeviceGetNvLinkState";
    if (nvml.call<int(Device, uint32_t, uint32_t*)>(name, device, link, &active) != k_success ||
        active == 0)
      continue;
    if (!gpu.nvlink_version) {
      uint32_t version = 0;
      name = "nvmlDeviceGetNvLinkVersion";
      result = nvml.call<int(Device, uint32_t, uint32_t*)>(name, device, link, &version);
      gpu.nvlink_version = nvml.answer(result, name, version);
    }
    const Fact<std::string> end = link_end(nvml, device, link);
    if (end)
      ends.push_back(*end);
    else if (!gpu.nvlink_remotes)
      gpu.nvlink_remotes =
          missing<std::vector<std::string>>(end.why, end.source.kind, end.source.detail, end.note);
  }
  if (!ends.empty())
    gpu.nvlink_remotes =
        known(std::move(ends), SourceKind::nvml, "nvmlDeviceGetNvLinkRemotePciInfo");
}

}  // namespace

void ask_peers(NvmlCalls& nvml, const std::vector<facts::NvmlGpu>& all, facts::NvmlGpu& gpu) {
  nvml.about(nullptr);
  const Device device = handle_of(nvml, gpu.index);
  if (device == nullptr) return;
  if (gpu.nvlinks_active.value_or(0) > 0) ask_nvlinks(nvml, gpu, device);
  for (const facts::NvmlGpu& other : all) {
    if (other.index == gpu.index) continue;
    if (const Device peer = handle_of(nvml, other.index))
      gpu.peers.push_back(ask_peer(nvml, device, peer, other.index));
  }
}

}  // namespace cufit::host
