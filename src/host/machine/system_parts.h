// SPDX-License-Identifier: Apache-2.0
// The parts of the system probe, one file each. Only system.cc and visible_gpus.cc call
// them.
#pragma once

#include <vector>

#include "formats/system/cgroup.h"
#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

// system.cc: architecture, wsl, jetson, boot_id: what decides which wheel runs.
void read_identity(const Host& host, facts::SystemFacts& system);
// system_libraries.cc: libc, glibc.
void read_libc(const Host& host, facts::SystemFacts& system);
// system_libraries.cc: libc, glibc, glibcxx, nccl.
void read_system_libraries(const Host& host, facts::SystemFacts& system);
// system_limits.cc: cgroup, memory_limit_bytes, cpu_limit, shm_bytes, shm_free_bytes,
// memlock_bytes, cpus.
void read_system_limits(const Host& host, const std::vector<formats::Mount>& mounts,
                        facts::SystemFacts& system);
// system_container.cc: container. Needs system.wsl.
void read_container_kind(const Host& host, const std::vector<formats::Mount>& mounts,
                         facts::SystemFacts& system);

}  // namespace cufit::host
