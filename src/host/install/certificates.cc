// SPDX-License-Identifier: Apache-2.0
#include "host/install/certificates.h"

namespace cufit::host {
namespace {

// As Go's crypto/x509 lists them for Linux.
constexpr const char* k_bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL 6
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/pki/tls/cacert.pem",                            // OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL 7 and newer
    "/etc/ssl/cert.pem",                                  // Alpine
};

}  // namespace

std::string certificate_bundle(const Host& host) {
  if (const auto named = host.variable("SSL_CERT_FILE"); named && !named->empty()) return *named;
  for (const char* bundle : k_bundles)
    if (const auto status = host.status(bundle);
        status && status->is_regular && status->size_bytes > 0)
      return bundle;
  return {};
}

}  // namespace cufit::host
