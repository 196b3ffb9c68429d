/* SPDX-License-Identifier: Apache-2.0
 * civetweb 1.15 opens OpenSSL as `libssl.so` and `libcrypto.so`, names that only development packages bring, and calls
 * SSL_get_peer_certificate, which OpenSSL 3 has as SSL_get1_peer_certificate alone: over TLS it jumps to 0 then (Debian 12).
 * Compiled twice, with those names and OpenSSL 3 behind them; http_server.cc opens both before civetweb does. */
#ifdef CUFIT_SSL
struct ssl_st;
struct x509_st;
struct x509_st* SSL_get1_peer_certificate(const struct ssl_st* ssl);

__attribute__((visibility("default"))) struct x509_st* SSL_get_peer_certificate(
    const struct ssl_st* ssl) {
  return SSL_get1_peer_certificate(ssl);
}
#endif
