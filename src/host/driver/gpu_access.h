// SPDX-License-Identifier: Apache-2.0
// What files say about the GPUs that a program started now would see: read in a millisecond or two,
// so that a launcher need not start the driver. Used by commands/run/find_live_target.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "facts/visible_gpus.h"
#include "host/files/host.h"

namespace cufit::host {

facts::GpuAccess read_gpu_access(const Host& host);

// UUIDs by the number of the device file, /dev/nvidiaN: NVML's order is another one.
std::map<uint32_t, std::string> read_gpu_minors(const Host& host);

// Everything that the driver's answer depends on, as lines; empty where no boot id tells one start
// of the machine from the next, so that nothing may be kept.
std::string visibility_key(const Host& host, const facts::GpuAccess& launch);

}  // namespace cufit::host
