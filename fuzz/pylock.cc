// SPDX-License-Identifier: Apache-2.0
#include "formats/python/pylock.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lock = cufit::formats::parse_pylock(text, "pylock.toml");
  if (lock) cufit::formats::download_bytes(*lock, "3.12", "x86_64");
  return 0;
}
