// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/binary/elf_versions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cufit::MemorySource source("input", std::string(reinterpret_cast<const char*>(data), size));
  std::vector<cufit::formats::Damage> damage;
  auto names = cufit::formats::read_version_definitions(source, damage);
  if (names) (void)cufit::formats::highest_version(*names, "GLIBCXX_");
  return 0;
}
