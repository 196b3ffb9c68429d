// SPDX-License-Identifier: Apache-2.0
// The memory limits that NVML of driver 615 and later sets on a cgroup: nvmlDeviceSetMemoryLimits_v1 and its getter, in a
// child as every call of the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/memory_limits.h"
#include "host/files/host.h"

namespace cufit::host {

struct LimitAnswer {
  bool supported = false;  // the library has the functions
  std::string driver;      // "615.36"; empty: not told
  bool undone = false;     // a GPU refused, so those before it have their old limits again
  std::vector<facts::LimitedGpu> gpus;
};

struct LimitRequest {
  std::string name_space;                     // the cgroup's path below its mount, as NVML wants it
  std::optional<facts::MemoryLimits> limits;  // to set; none: only ask
};

// All GPUs or none: where one does not answer nothing is set, where one refuses what was set is taken back.
// Error: no NVML, it did not start, or the child did not end in time (its last call is named).
Result<LimitAnswer> nvml_memory_limits(const Host& host, const LimitRequest& request,
                                       const std::string& library_dir = {});

}  // namespace cufit::host
