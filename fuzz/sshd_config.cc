// SPDX-License-Identifier: Apache-2.0
// Any bytes as sshd_config: lines are those of the text, keywords are lower case.
#include <cstdlib>

#include "formats/system/sshd_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t bytes = 0;
  for (const cufit::formats::SshdSetting& one : cufit::formats::parse_sshd_config(text)) {
    bytes += one.keyword.size() + one.value.size();
    if (one.keyword.empty() || one.value.empty() || one.line == 0) std::abort();
    for (const char c : one.keyword)
      if (c >= 'A' && c <= 'Z') std::abort();
  }
  if (bytes > size) std::abort();
  return 0;
}
