// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/ld_cache.h"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto cache =
      cufit::formats::parse_ld_cache(std::string(reinterpret_cast<const char*>(data), size));
  if (!cache) return 0;
  size_t sum = 0;
  for (const auto& entry : cache->entries)
    sum += entry.name.size() + entry.path.size() + entry.hwcaps.size();
  sum += cache->find("libcuda.so.1", "x86_64").size();
  return sum == SIZE_MAX;
}
