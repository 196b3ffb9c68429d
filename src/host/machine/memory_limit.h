// SPDX-License-Identifier: Apache-2.0
// What cgroups (v1 and v2) let this process take of the machine's memory. Used by the system probe,
// and by who starts several programs at once.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fact.h"
#include "formats/system/cgroup.h"
#include "host/files/host.h"

namespace cufit::host {

// `found`: the folders of the memory controller, at least one.
Fact<uint64_t> memory_limit(const Host& host, const formats::CgroupFolders& found);

// What the limits leave; nullopt: there is none, or none that tells what is used.
std::optional<uint64_t> left_of_memory_limits(const Host& host);

}  // namespace cufit::host
