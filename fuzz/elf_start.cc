// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_start.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Before it: how large the archive says that the file is.
  uint64_t whole = 0;
  if (size < sizeof whole) return 0;
  std::memcpy(&whole, data, sizeof whole);
  const std::string_view start(reinterpret_cast<const char*>(data) + sizeof whole,
                               size - sizeof whole);
  cufit::formats::read_elf_start(start, whole < start.size() ? start.size() + 4096 : whole, "a.so");
  return 0;
}
