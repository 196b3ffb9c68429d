// SPDX-License-Identifier: Apache-2.0
// What the system tells about host memory around the end of a program: how often the kernel's
// out-of-memory killer struck, and how much memory was left. Used by host/process/supervise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "facts/supervised_run.h"
#include "host/files/host.h"

namespace cufit::host {

// Counts since the start of the cgroup or the machine; nullopt = not told.
facts::MemoryKills read_memory_kills(const Host& host);

std::optional<facts::HostMemory> read_host_memory(const Host& host);

}  // namespace cufit::host
