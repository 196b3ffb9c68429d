// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <cstdint>

namespace cufit {

std::string base64(std::string_view bytes) {
  static constexpr char k_digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.resize((bytes.size() + 2) / 3 * 4, '=');
  size_t to = 0;
  for (size_t from = 0; from < bytes.size(); from += 3) {
    const size_t left = bytes.size() - from;
    const auto byte = [&](size_t i) {
      return i < left ? static_cast<uint32_t>(static_cast<uint8_t>(bytes[from + i])) : 0u;
    };
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    out[to++] = k_digits[three >> 18];
    out[to++] = k_digits[three >> 12 & 63];
    if (left > 1) out[to] = k_digits[three >> 6 & 63];
    ++to;
    if (left > 2) out[to] = k_digits[three & 63];
    ++to;
  }
  return out;
}

}  // namespace cufit
