// SPDX-License-Identifier: Apache-2.0
#include "formats/system/pci_config.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto acs = cufit::formats::parse_acs({reinterpret_cast<const char*>(data), size});
  return cufit::formats::acs_text(acs.on).size() == SIZE_MAX;
}
