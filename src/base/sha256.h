// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) as lower-case hex: lock files name the bytes of their parts by it. 16 lines
// of arithmetic instead of a cryptographic library loaded with every start.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cufit {

class Sha256 {
 public:
  void add(std::string_view bytes);
  std::string hex();  // 64 characters; ends the sum

 private:
  void block(const unsigned char* bytes);
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  size_t held_ = 0;
  uint64_t bytes_ = 0;
};

std::string sha256(std::string_view bytes);

}  // namespace cufit
