// SPDX-License-Identifier: Apache-2.0
// The parts of the collect-env probe, one file each. Only collect_env.cc calls them.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

// A file's trimmed text at any length that sysfs has (a page): lists of CPUs may be longer than
// what line_fact keeps. Empty when it cannot be read.
std::string page_text(const Host& host, const std::string& path);  // lscpu_caches.cc

// lscpu.cc: the lines that lscpu prints, in its order and words.
std::vector<facts::CpuLine> read_lscpu(const Host& host, const facts::SystemFacts& system);
// lscpu_caches.cc: "L1d cache", "L2 cache", ...: sizes of all instances together.
void read_lscpu_caches(const Host& host, const std::vector<uint32_t>& online,
                       std::vector<facts::CpuLine>& out);
// tool_versions.cc: gcc, clang, cmake; nvcc_version of toolkits whose version.json does not say it.
void read_tool_versions(const Host& host, facts::Facts& facts);

}  // namespace cufit::host
