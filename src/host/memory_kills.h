// SPDX-License-Identifier: Apache-2.0
// What the system tells about host memory around the end of a program: how often the kernel's
// out-of-memory killer struck, and how much memory was left. Used by host/supervise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/host.h"

namespace cufit::host {

// Counts since the start of the cgroup or the machine; nullopt = not told.
struct MemoryKills {
  // "oom_kill" of this process's own cgroup: memory.events (v2) or memory.oom_control (v1).
  std::optional<uint64_t> cgroup;
  std::string cgroup_file;
  std::optional<uint64_t> machine;  // "oom_kill" of /proc/vmstat (Linux 4.13 on)
};
MemoryKills read_memory_kills(const Host& host);

struct HostMemory {
  uint64_t total_bytes = 0, available_bytes = 0;  // MemTotal and MemAvailable of /proc/meminfo
};
std::optional<HostMemory> read_host_memory(const Host& host);

}  // namespace cufit::host
