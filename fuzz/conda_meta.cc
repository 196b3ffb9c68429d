// SPDX-License-Identifier: Apache-2.0
#include "formats/python/conda_meta.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::parse_conda_file_name(text);
  auto record = cufit::formats::parse_conda_record(text);
  (void)record.has_value();
  return 0;
}
