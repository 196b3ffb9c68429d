// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_page.h"
#include "formats/python/wheel_name.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto wheel = parse_wheel_name(text))
    fits(*wheel, "3.11", "x86_64", *cufit::parse_version("2.28"));
  const auto page = parse_index_page(text, "index");
  if (!page) return 0;
  for (const IndexFile& file : page->files)
    if (const auto wheel = parse_wheel_name(file.filename))
      fits(*wheel, "3.11", "x86_64", *cufit::parse_version("2.28"));
  return 0;
}
