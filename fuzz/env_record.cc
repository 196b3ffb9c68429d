// SPDX-License-Identifier: Apache-2.0
#include "formats/python/env_record.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// What is read is written, and reads the same again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto record = parse_env_record(text, "x.json");
  if (!record) return 0;
  const std::string written = env_record_text(*record);
  const auto again = parse_env_record(written, "x.json");
  if (!again || env_record_text(*again) != written) std::abort();
  return 0;
}
