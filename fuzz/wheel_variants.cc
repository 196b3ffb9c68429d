// SPDX-License-Identifier: Apache-2.0
#include "formats/python/wheel_variants.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::parse_wheel_variants(text, "variants.json");
  return 0;
}
