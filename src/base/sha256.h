// SPDX-License-Identifier: Apache-2.0
// SHA-256 as lower-case hex: lock files and container images name bytes by it. The arithmetic is
// Mbed TLS's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct mbedtls_sha256_context;  // of mbedtls/sha256.h

namespace cufit {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::string_view bytes);
  std::string hex();  // 64 characters; ends the sum

 private:
  std::unique_ptr<mbedtls_sha256_context> context_;
};

std::string sha256(std::string_view bytes);

}  // namespace cufit
