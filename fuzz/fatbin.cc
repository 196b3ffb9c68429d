// SPDX-License-Identifier: Apache-2.0
// Any bytes as a fatbin section: entries come in file order and lie inside the section.
#include <cstdlib>

#include "formats/binary/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  MemorySource source("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  std::vector<formats::Damage> damage;
  formats::CodeTable table;
  uint64_t last = 0;
  formats::walk_fatbin(
      source, 0, size,
      [&](const formats::FatbinEntry& entry) {
        if (entry.offset <= last || entry.container >= entry.offset || entry.offset + 64 > size)
          std::abort();
        last = entry.offset;
        table.add(entry, entry.flags & 1);
      },
      damage);
  for (const formats::DeviceCode& code : table.sorted())
    if (code.count == 0) std::abort();
  if (damage.size() > formats::k_max_damage + 1) std::abort();
  return 0;
}
