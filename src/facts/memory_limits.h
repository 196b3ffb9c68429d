// SPDX-License-Identifier: Apache-2.0
// The kernel driver's memory limits on a cgroup, as NVML of driver 615 and later tells and takes them. Filled by
// host/driver/nvml_limits.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cufit::facts {

constexpr uint64_t k_no_memory_limit = ~uint64_t{0};  // hard; none is soft 0

struct MemoryLimits {
  uint64_t soft_bytes = 0, hard_bytes = k_no_memory_limit, used_bytes = 0;
};

// What one GPU said: before, and after where a limit was to be set.
struct LimitedGpu {
  uint32_t index = 0;
  std::string name, uuid;
  int result = 0;            // nvmlReturn_t of the call that failed; 0 = none
  std::string call, why;     // that call, NVML's words for the result
  uint64_t total_bytes = 0;  // of its memory; 0: not told
  std::optional<MemoryLimits> before, after;
};

}  // namespace cufit::facts
