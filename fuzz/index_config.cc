// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_config.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_pip_indexes(text, "pip.conf");
  (void)parse_uv_indexes(text, "uv.toml", false).has_value();
  (void)parse_uv_indexes(text, "pyproject.toml", true).has_value();
  parse_index_word(text, "--index");
  without_credentials(text);
  return 0;
}
