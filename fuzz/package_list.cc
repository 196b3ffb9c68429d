// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/python/package_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  cufit::formats::PackageList list =
      cufit::formats::parse_package_list(cufit::formats::plain_text_lines(text));
  CUFIT_CHECK(list.entries.size() <= 4000, "the reader bounds what it keeps");
  for (const cufit::formats::PackageEntry& entry : list.entries)
    CUFIT_CHECK(!entry.name.empty() && entry.version.size() <= 64, "and their lengths");
  return 0;
}
