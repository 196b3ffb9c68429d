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

void set_basics(CurlEasy& easy, const CurlBasics& basics, CurlTransfer& transfer) {
  // The older option of this kind, which every libcurl 7.61 to 8 knows.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  easy.set(CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#pragma GCC diagnostic pop
  easy.set(CURLOPT_URL, basics.url.c_str());
  easy.set(CURLOPT_USERAGENT, "cufit/" CUFIT_VERSION);
  easy.set(CURLOPT_NOSIGNAL, 1L);
  easy.set(CURLOPT_TIMEOUT_MS, static_cast<long>(basics.seconds * 1000));
  if (!basics.certificates.empty()) easy.set(CURLOPT_CAINFO, basics.certificates.c_str());
  easy.set(CURLOPT_ERRORBUFFER, basics.said);
  easy.set(CURLOPT_WRITEFUNCTION, keep_body);
  easy.set(CURLOPT_WRITEDATA, &transfer);
  easy.set(CURLOPT_XFERINFOFUNCTION, basics.progress);
  easy.set(CURLOPT_XFERINFODATA, basics.place);
  easy.set(CURLOPT_NOPROGRESS, 0L);
}

std::string curl_certificates() {
  const char* const named = std::getenv("SSL_CERT_FILE");
  if (k_curl_is_linked) return certificate_bundle(RealHost());
  return named != nullptr ? named : "";
}

}  // namespace cufit::host
