// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/system/kernel_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::KernelLog log = cufit::formats::parse_kernel_log(text);
  CUFIT_CHECK(log.lines.size() <= 200 && log.xids.size() <= 64, "the reader bounds what it keeps");
  return 0;
}
