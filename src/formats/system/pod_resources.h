// SPDX-License-Identifier: Apache-2.0
// The kubelet's answer to which pod was given which GPU: `List` of its PodResources API, version 1. A gRPC frame around a
// protobuf message. The field numbers are those of pkg/apis/podresources/v1/api.proto of kubernetes/kubelet (2026-07):
//
//   frame                      u8 compressed (0) | u32 length, big-endian | message
//   ListPodResourcesResponse   1 repeated PodResources
//   PodResources               1 name | 2 namespace | 3 repeated ContainerResources
//   ContainerResources         1 name | 2 repeated ContainerDevices | 5 repeated DynamicResource
//   ContainerDevices           1 resource_name | 2 repeated device_ids
//   DynamicResource            4 repeated ClaimResource      (a claim of dynamic resource allocation)
//   ClaimResource              2 driver_name | 4 device_name
//
// The answer has neither the pod's UID nor ids of containers. What is not a GPU of NVIDIA is left out; a pod without one is
// kept, since its name may be asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/damage.h"

namespace cufit::formats {

struct PodDevice {
  std::string
      resource;  // "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"; of a claim its driver: "gpu.nvidia.com"
  std::string id;  // as the device plugin names it: "GPU-...::3", "nvidia0"; of a claim "gpu-0"
};
struct PodContainer {
  std::string name;
  std::vector<PodDevice> devices;
};
struct NodePod {
  std::string name, name_space;
  std::vector<PodContainer> containers;
};

// All texts are printable. With damages it is not known what else there is: such an answer must not be used to say that a pod
// alone has a device.
struct PodResources {
  std::vector<NodePod> pods;
  std::vector<Damage> damages;  // byte of the message
};

// The message of an answer that has one. Errors: cut short, compressed, more than one message.
Result<std::string_view> grpc_message(std::string_view body);
PodResources parse_pod_resources(std::string_view message);

// Which GPU a device id names: a UUID as NVML has it, of a GPU or an instance, or the number of its /dev/nvidiaN. Neither:
// another form, of which nothing is known.
struct NamedGpu {
  std::string uuid;
  std::optional<uint32_t> minor;
};
NamedGpu gpu_of_device(const PodDevice& device);

}  // namespace cufit::formats
