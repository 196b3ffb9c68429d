// SPDX-License-Identifier: Apache-2.0
#include "host/driver/answer_cache.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// Any body with the right checksum; what is taken from it is kept and taken again alike.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::host;
  const std::string body(reinterpret_cast<const char*>(data), size);
  const std::string key = "boot 1\n";
  cufit::facts::Facts facts, again;
  (void)read_entry(body, key, 100, facts);
  if (!read_entry(sealed(body), key, 100, facts)) return 0;
  const std::string written = entry_text(key, 100, facts);
  if (!read_entry(written, key, 100, again) || entry_text(key, 100, again) != written) std::abort();
  return 0;
}
