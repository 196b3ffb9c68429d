// SPDX-License-Identifier: Apache-2.0
// Numbers and texts as they stand in a GGUF file.
#pragma once

#include <cstdint>
#include <string>

namespace cufit::test {

inline std::string le(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
inline std::string text(const std::string& value) { return le(value.size(), 8) + value; }

}  // namespace cufit::test
