// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/quota_domain.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto read = cufit::formats::parse_quota_domain(bytes);
  // What was read can be written, and is read the same again.
  if (!read) return 0;
  for (const auto& device : read->devices) {
    if (device.uuid.empty() && device.pci.empty()) return 0;
  }
  auto written = cufit::formats::make_quota_domain(*read);
  if (!written) __builtin_trap();
  auto again = cufit::formats::parse_quota_domain(*written);
  if (!again || again->devices.size() != read->devices.size() || again->name != read->name)
    __builtin_trap();
  return 0;
}
