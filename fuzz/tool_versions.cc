// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/tool_versions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)gcc_version_in(bytes);
  (void)nvcc_version_in(bytes);
  (void)dpkg_upstream(dpkg_version(bytes, "cmake"));
  return 0;
}
