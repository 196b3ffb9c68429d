// SPDX-License-Identifier: Apache-2.0
// Any bytes as passwd and shadow: every account has a name and a line.
#include <cstdlib>

#include "formats/system/accounts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& one : cufit::formats::parse_passwd(text))
    if (one.name.empty() || one.line == 0) std::abort();
  for (const auto& one : cufit::formats::parse_shadow(text))
    if (one.name.empty() || one.line == 0) std::abort();
  return 0;
}
