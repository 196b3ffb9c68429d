// SPDX-License-Identifier: Apache-2.0
#include "formats/python/marker.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::requirement_that_applies(text, {"3.12", "x86_64"});
  cufit::formats::requirement_that_applies(text, {});
  return 0;
}
