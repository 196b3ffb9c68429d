// SPDX-License-Identifier: Apache-2.0
#include "host/install/certificates.h"

#include <gtest/gtest.h>

#include "../temporary_tree.h"

namespace cufit::host {
namespace certificates_test {

TEST(Certificates, TheNamedBundleThenTheFirstPlaceThatIsThere) {
  const TemporaryTree tree;
  EXPECT_EQ(certificate_bundle(tree.host()), "");
  tree.write("/etc/pki/tls/certs/ca-bundle.crt", "x");
  EXPECT_EQ(certificate_bundle(tree.host()), "/etc/pki/tls/certs/ca-bundle.crt");
  tree.write("/etc/ssl/certs/ca-certificates.crt/a-folder", "x");
  EXPECT_EQ(certificate_bundle(tree.host()), "/etc/pki/tls/certs/ca-bundle.crt");
  tree.write("/etc/pki/tls/certs/ca-bundle.crt", "");
  tree.write("/etc/ssl/cert.pem", "x");
  EXPECT_EQ(certificate_bundle(tree.host()), "/etc/ssl/cert.pem");
  EXPECT_EQ(certificate_bundle(tree.host({{"SSL_CERT_FILE", "/own.pem"}})), "/own.pem");
}

}  // namespace certificates_test
}  // namespace cufit::host
