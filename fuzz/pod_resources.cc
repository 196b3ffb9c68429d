// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/prose/printable.h"
#include "formats/system/pod_resources.h"

// A frame, or the message alone.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view message = grpc_message(bytes).value_or(bytes);
  const PodResources read = parse_pod_resources(message);
  if (read.damages.size() > 1 || read.pods.size() > 4096) __builtin_trap();
  for (const Damage& one : read.damages)
    if (one.offset > message.size()) __builtin_trap();
  size_t devices = 0;
  for (const NodePod& pod : read.pods) {
    if (printable(pod.name) != pod.name || printable(pod.name_space) != pod.name_space)
      __builtin_trap();
    for (const PodContainer& container : pod.containers)
      for (const PodDevice& device : container.devices) {
        if (printable(device.id) != device.id || printable(container.name) != container.name)
          __builtin_trap();
        const NamedGpu gpu = gpu_of_device(device);
        if (!gpu.uuid.empty() && gpu.minor) __builtin_trap();
        if (!gpu.uuid.empty() && device.id.find(gpu.uuid) != 0) __builtin_trap();
        ++devices;
      }
  }
  if (devices > 65536) __builtin_trap();
  return 0;
}
