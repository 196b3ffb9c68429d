// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/system/cpu_list.h"

// What is printed reads back as the same list.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  auto list = parse_cpu_list(std::string_view(reinterpret_cast<const char*>(data), size));
  if (list && parse_cpu_list(cpu_list_text(*list)) != list) std::abort();
  return 0;
}
