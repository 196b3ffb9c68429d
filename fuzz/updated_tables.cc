// SPDX-License-Identifier: Apache-2.0
#include "knowledge/updated_tables.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const cufit::knowledge::Knowledge base;
  const auto read = cufit::knowledge::UpdatedTables::read(text, "t.toml", base);
  if (read) (*read)->knowledge().gpus_meant("RTX 3060");
  return 0;
}
