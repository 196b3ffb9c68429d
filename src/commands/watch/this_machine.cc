// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/this_machine.h"

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::commands {

std::string machine_name(const Context& context) {
  const Result<std::string> name = context.machine.read_file("/proc/sys/kernel/hostname", 4096);
  return name ? formats::printable(trim(*name), 64) : "";
}

int64_t utc_offset_at(std::time_t time) {
  std::tm local{};
  return localtime_r(&time, &local) != nullptr ? local.tm_gmtoff : 0;
}

}  // namespace cufit::commands
