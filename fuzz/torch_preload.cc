// SPDX-License-Identifier: Apache-2.0
#include "formats/python/torch_preload.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::parse_torch_preload(text);
  return 0;
}
