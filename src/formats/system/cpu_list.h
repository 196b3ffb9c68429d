// SPDX-License-Identifier: Apache-2.0
// Lists of CPUs as the kernel writes them ("0-3,8"; cpuset(7)) and as lscpu prints them, where a
// run of two is "0,1". Used by the CPU part of collect-env.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

// Ascending, each once. An empty text is an empty list; nullopt for another form or a number over
// 65535 (the kernel's own limit is 8192).
std::optional<std::vector<uint32_t>> parse_cpu_list(std::string_view text);
std::string cpu_list_text(const std::vector<uint32_t>& ascending);

}  // namespace cufit::formats
