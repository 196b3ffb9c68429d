// SPDX-License-Identifier: Apache-2.0
// Which GPUs a program started now would see, as far as files tell. Where files cannot tell
// (several kinds of GPU and CUDA's own order, MIG, cuda-compat, WSL, nodes that the driver may
// still make,
// ...) the answer is "ask the driver", with the reason; nothing is guessed. Filled by
// host/driver/gpu_access.cc, judged by resolve/live_target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::facts {

// A GPU that the NVIDIA module drives: an entry of /proc/driver/nvidia/gpus.
struct DrivenGpu {
  std::string address;            // "0000:01:00.0"
  std::string device_id;          // "2204"; empty = not told
  std::string model;              // "NVIDIA GeForce GTX 1080"; empty = not told
  std::string uuid;               // "GPU-..."; empty = not told (the module has not started it yet)
  std::optional<uint32_t> minor;  // its node is /dev/nvidia<minor>
  bool excluded = false;          // by the module's own setting: CUDA does not show it
  bool usable = false;            // the node is there and this process may open it
};

struct GpuAccess {
  // system's identity and libc, kernel.version, pci (the driven GPUs), driver_libraries (the
  // libcuda that would load), variables; the rest is not asked.
  Facts facts;
  std::vector<DrivenGpu> gpus;  // by PCI address
  bool listed = false;          // /proc/driver/nvidia/gpus could be read
  bool mig = false;             // some GPU is divided into instances
  bool mps = false;             // a multi-process server may show other devices than there are
};

struct Visibility {
  std::vector<size_t> gpus;  // of GpuAccess::gpus; valid where `ask` is empty
  // Why only the driver knows: "wsl", "jetson", "no_module", "compat", "mismatch", "preload",
  // "unread", "mig", "mps", "nodes", "order", "names". Empty: the files tell.
  std::string ask;
  // CUDA_VISIBLE_DEVICES is set and shows nothing: "hidden" where it says so itself (empty, -1,
  // NoDevFiles), "unmatched" where its first entry is none of the GPUs.
  std::string none;
};
Visibility visible_gpus(const GpuAccess& launch);

// libcuda that a new process would load; null = none.
const DriverLibrary* loaded_libcuda(const Facts& facts);

}  // namespace cufit::facts
