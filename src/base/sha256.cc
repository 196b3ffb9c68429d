// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <mbedtls/sha256.h>
#include <mbedtls/version.h>

#include <array>

// Mbed TLS 2 gives these the suffix _ret, 3 took it away again. Software sums cannot fail.
#if MBEDTLS_VERSION_MAJOR < 3
#define mbedtls_sha256_starts mbedtls_sha256_starts_ret
#define mbedtls_sha256_update mbedtls_sha256_update_ret
#define mbedtls_sha256_finish mbedtls_sha256_finish_ret
#endif

namespace cufit {

Sha256::Sha256() : context_(std::make_unique<mbedtls_sha256_context>()) {
  mbedtls_sha256_init(context_.get());
  (void)mbedtls_sha256_starts(context_.get(), 0);
}

Sha256::~Sha256() { mbedtls_sha256_free(context_.get()); }

void Sha256::add(std::string_view bytes) {
  (void)mbedtls_sha256_update(context_.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
}

std::string Sha256::hex() {
  static constexpr char k_digits[] = "0123456789abcdef";
  std::array<unsigned char, 32> digest{};
  (void)mbedtls_sha256_finish(context_.get(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) {
    text += k_digits[byte >> 4];
    text += k_digits[byte & 15];
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

}  // namespace cufit
