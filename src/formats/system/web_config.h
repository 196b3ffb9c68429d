// SPDX-License-Identifier: Apache-2.0
// The file in which Prometheus' own exporters have TLS and users (`--web.config.file`; its form is that of
// prometheus/exporter-toolkit, docs/web-configuration.md): read with yaml-cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

enum class ClientCertificate { none, if_given, required };

struct WebTls {
  std::string certificate,
      key;  // files, as written: beside the configuration where they are relative
  ClientCertificate client = ClientCertificate::none;
  std::string client_authority;  // file; empty = none
  int least = 12;                // 12 or 13: TLS 1.2, TLS 1.3
};

struct WebConfig {
  bool has_tls = false;
  WebTls tls;
  std::vector<std::pair<std::string, std::string>> users;    // name and bcrypt hash
  std::vector<std::pair<std::string, std::string>> headers;  // of every answer
};

// Error{malformed}: "web.yml, line 3: what". A key that is not known is one: a mistyped one would leave a page open. So is what
// cufit cannot do (`cipher_suites`, RequestClientCert): it must not seem to be in force.
Result<WebConfig> parse_web_config(std::string_view text, const std::string& file);

// "$2y$10$" and 53 letters more.
bool is_bcrypt_hash(std::string_view text);

}  // namespace cufit::formats
