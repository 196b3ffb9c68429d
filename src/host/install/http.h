// SPDX-License-Identifier: Apache-2.0
// One GET or POST over HTTP or HTTPS by libcurl, which is opened when first needed: nothing else of
// cufit uses the network, and a machine without it lacks only that. Proxies are libcurl's own variables
// (http_proxy, https_proxy, no_proxy), passwords may stand in ~/.netrc, SSL_CERT_FILE names another
// bundle of certificates. And one call of gRPC to a daemon of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/process/child_process.h"

namespace cufit::host {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Accept: ..."
  uint64_t most_bytes = 64u << 20;   // of the body, unpacked
  std::string range;                 // "0-4095", "-65536": these bytes alone, as they are
  double stall_seconds = 20;         // without a byte
  double seconds = 300;              // in all
};

struct HttpAnswer {
  long status = 0;
  std::string body, content_type, etag;
  std::string content_range;  // "bytes 0-4095/123456" of an answer 206
  std::string url;            // after redirects
};

// Error{unsupported} without libcurl, {timeout} for stalls, {cancelled} after a signal, {io} else.
// No message holds a password.
Result<HttpAnswer> http_get(const HttpRequest& request, Interrupts& interrupts);

// JSON for one receiver: no redirect is followed, no password looked up.
struct HttpPost {
  std::string url;
  std::string body;
  double seconds = 10;            // in all
  std::function<bool()> stopped;  // asked about once a second, in the caller's thread; may be empty
};
constexpr uint64_t k_most_post_answer_bytes = 64 << 10;  // more is cut off

// Whatever the status. Error{unsupported} without libcurl, {timeout}, {cancelled} where it was
// stopped, {io} else. No message holds anything of the address but the host's name: the rest is a secret.
Result<HttpAnswer> http_post(const HttpPost& post);

// A unary call over a unix socket: HTTP/2 without TLS, which both sides know beforehand.
struct GrpcRequest {
  std::string socket;              // its path, at most 107 bytes
  std::string method;              // "/v1.PodResourcesLister/List"
  std::string body;                // a frame
  uint64_t most_bytes = 4u << 20;  // of the answer
  double connect_seconds = 0.2, seconds = 1;
};

// The frame of an answer whose status is OK. Error{unsupported} without a libcurl that has HTTP/2 and unix sockets, and where
// the daemon has no such method; {no_permission}, {timeout}; {malformed} for what is no gRPC, or too large; {io} else.
// It is no one's who called: a signal does not end it, `seconds` does.
Result<std::string> grpc_call(const GrpcRequest& request);

// "libcurl/7.88.1 OpenSSL/3.0.15"; empty = not installed.
std::string http_library();

}  // namespace cufit::host
