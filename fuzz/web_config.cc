// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/system/web_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = cufit::formats::parse_web_config(text, "web.yml");
  if (!config) return 0;
  if (config->has_tls && (config->tls.certificate.empty() || config->tls.key.empty()))
    __builtin_trap();
  for (const auto& [name, hash] : config->users)
    if (name.empty() || !cufit::formats::is_bcrypt_hash(hash)) __builtin_trap();
  return 0;
}
