// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/traces_at_once.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/number.h"
#include "host/process/memory_kills.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_spare_percent = 150;  // a variant can take more of it than the program did

// What a container leaves; nothing where it has no bound.
std::optional<uint64_t> left_in_container(const host::Host& files) {
  const auto number = [&](const char* path) -> std::optional<uint64_t> {
    const auto text = files.read_head(path, 64);
    return text ? parse_uint(trim(*text)) : std::nullopt;
  };
  const std::optional<uint64_t> most = number("/sys/fs/cgroup/memory.max"),
                                used = number("/sys/fs/cgroup/memory.current");
  if (!most || !used) return std::nullopt;
  return *most - std::min(*most, *used);
}

}  // namespace

bool room_for_two(const host::Host& files, uint64_t peak_bytes) {
  if (std::thread::hardware_concurrency() < 2 || peak_bytes == 0) return false;
  const std::optional<facts::HostMemory> memory = host::read_host_memory(files);
  if (!memory) return false;
  const uint64_t left = std::min(memory->available_bytes,
                                 left_in_container(files).value_or(memory->available_bytes));
  return left / k_spare_percent * 100 / 2 >= peak_bytes;
}

}  // namespace cufit::commands
