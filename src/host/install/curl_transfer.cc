// SPDX-License-Identifier: Apache-2.0
#include "host/install/curl_transfer.h"

#include <cstdlib>

#include "host/install/certificates.h"

namespace cufit::host {

size_t keep_body(char* bytes, size_t size, size_t count, void* place) {
  CurlTransfer& transfer = *static_cast<CurlTransfer*>(place);
  const size_t length = size * count;
  if (transfer.answer.body.size() + length > transfer.most_bytes) {
    transfer.too_large = true;
    return 0;
  }
  transfer.answer.body.append(bytes, length);
  return length;
}

std::string curl_certificates() {
  const char* const named = std::getenv("SSL_CERT_FILE");
  if (k_curl_is_linked) return certificate_bundle(RealHost());
  return named != nullptr ? named : "";
}

}  // namespace cufit::host
