// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/traces_at_once.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "host/machine/memory_limit.h"
#include "host/process/memory_kills.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_spare_percent = 150;  // a variant can take more of it than the program did

}  // namespace

bool room_for_two(const host::Host& files, uint64_t peak_bytes) {
  if (std::thread::hardware_concurrency() < 2 || peak_bytes == 0) return false;
  const std::optional<facts::HostMemory> memory = host::read_host_memory(files);
  if (!memory) return false;
  const uint64_t left =
      std::min(memory->available_bytes,
               host::left_of_memory_limits(files).value_or(memory->available_bytes));
  return left / k_spare_percent * 100 / 2 >= peak_bytes;
}

}  // namespace cufit::commands
