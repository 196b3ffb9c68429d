// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_start.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view start(reinterpret_cast<const char*>(data), size);
  cufit::formats::read_elf_start(start, size + 4096, "a.so");
  return 0;
}
