// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/loader_answer.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)cufit::formats::parse_loader_answer({reinterpret_cast<const char*>(data), size});
  return 0;
}
