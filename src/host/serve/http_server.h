// SPDX-License-Identifier: Apache-2.0
// Answers HTTP requests on one address, in threads of civetweb (the server that prometheus-cpp brings; libcivetweb is opened
// when it is needed, a release has it in the program).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/system/web_config.h"

namespace cufit::host {

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // "::1"; empty = all of IPv4, and of IPv6 where it is there
  uint16_t port = 0;                  // 0 = any that is free
  formats::WebConfig web;             // files absolute
};

class HttpServer {
 public:
  // `answer` is asked for GET and HEAD with the path ("/metrics"), in several threads at once, until the server is gone.
  // Errors: the address is in use or none of this machine's, a certificate that cannot be read, no library.
  static Result<HttpServer> start(HttpServerOptions options,
                                  std::function<HttpReply(const std::string& path)> answer);
  ~HttpServer();
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;

  uint16_t port() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// "127.0.0.1:9836", "[::1]:9836", ":9836". Error{usage}.
Result<std::pair<std::string, uint16_t>> parse_listen_address(const std::string& text);

}  // namespace cufit::host
