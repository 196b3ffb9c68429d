// SPDX-License-Identifier: Apache-2.0
// What the guard's files hold in fixed places: texts that may lack their end, and 16 bytes of a UUID.
#pragma once

#include <cstdint>
#include <string>

namespace cufit::formats {

inline std::string fixed_text(const char* at, size_t size) {
  size_t length = 0;
  while (length < size && at[length]) ++length;
  return std::string(at, length);
}

// "GPU-00000000-1111-2222-3333-444444444444"; empty for sixteen zeros.
inline std::string gpu_uuid_text(const uint8_t (&uuid)[16], bool mig) {
  static const char k_hex[] = "0123456789abcdef";
  std::string out = mig ? "MIG-" : "GPU-";
  bool any = false;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += k_hex[uuid[i] >> 4];
    out += k_hex[uuid[i] & 15];
    any = any || uuid[i] != 0;
  }
  return any ? out : std::string();
}

}  // namespace cufit::formats
