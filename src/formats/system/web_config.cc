// SPDX-License-Identifier: Apache-2.0
#include "formats/system/web_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <set>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_bytes = 256 * 1024, k_most_users = 1000, k_bcrypt_length = 60;

// Those that exporter-toolkit lets a file set.
constexpr std::string_view k_headers[] = {"Strict-Transport-Security", "X-Content-Type-Options",
                                          "X-XSS-Protection", "X-Frame-Options",
                                          "Content-Security-Policy"};

// Read with the first error kept: what follows it is not looked at.
class WebConfigReader {
 public:
  explicit WebConfigReader(const std::string& file) : file_(file) {}

  Result<WebConfig> read(const YAML::Node& root) {
    if (root.IsNull()) return out_;  // an empty file: no TLS, no users
    each(root, "the file", [&](const std::string& key, const YAML::Node& value) {
      if (key == "tls_server_config")
        read_tls(value);
      else if (key == "http_server_config")
        read_http(value);
      else if (key == "basic_auth_users")
        read_users(value);
      else
        wrong(value, format("no key is called `{}` here", printable(key, 60)));
    });
    if (error_) return *error_;
    return out_;
  }

 private:
  void wrong(const YAML::Node& at, const std::string& what) {
    if (!error_)
      error_ = fail(Code::malformed, format("`{}`, line {}: {}", file_,
                                            (line_ >= 0 ? line_ : at.Mark().line) + 1, what));
  }

  template <class F>
  void each(const YAML::Node& map, const char* what, F&& take) {
    if (map.IsNull()) return;
    if (!map.IsMap()) return wrong(map, format("{} is no map", what));
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (error_) return;
      if (!entry.first.IsScalar()) line_ = -1;
      if (!entry.first.IsScalar()) return wrong(entry.first, "a key is no text");
      const std::string key = entry.first.Scalar();
      // Of the key: where a value is on other lines or missing, its own is a later one.
      const int outer = line_;
      line_ = entry.first.Mark().line;
      if (!seen.insert(key).second)
        return wrong(entry.first, format("`{}` is there twice", printable(key, 60)));
      take(key, entry.second);
      line_ = outer;
    }
  }

  std::string text(const std::string& key, const YAML::Node& node) {
    if (node.IsScalar()) return node.Scalar();
    wrong(node, format("`{}` is no text", printable(key, 60)));
    return {};
  }

  void read_client(const YAML::Node& value) {
    const std::string kind = text("client_auth_type", value);
    if (kind.empty() || kind == "NoClientCert")
      out_.tls.client = ClientCertificate::none;
    else if (kind == "VerifyClientCertIfGiven")
      out_.tls.client = ClientCertificate::if_given;
    else if (kind == "RequireAndVerifyClientCert")
      out_.tls.client = ClientCertificate::required;
    else
      wrong(value, format("`client_auth_type: {}` is not NoClientCert, VerifyClientCertIfGiven or "
                          "RequireAndVerifyClientCert",
                          printable(kind, 60)));
  }

  void read_least(const YAML::Node& value) {
    const std::string version = text("min_version", value);
    if (version == "TLS12")
      out_.tls.least = 12;
    else if (version == "TLS13")
      out_.tls.least = 13;
    else
      wrong(value, format("`min_version: {}` is not TLS12 or TLS13", printable(version, 60)));
  }

  void read_tls(const YAML::Node& map) {
    each(map, "`tls_server_config`", [&](const std::string& key, const YAML::Node& value) {
      out_.has_tls = true;
      if (key == "cert_file")
        out_.tls.certificate = text(key, value);
      else if (key == "key_file")
        out_.tls.key = text(key, value);
      else if (key == "client_ca_file")
        out_.tls.client_authority = text(key, value);
      else if (key == "client_auth_type")
        read_client(value);
      else if (key == "min_version")
        read_least(value);
      else
        wrong(value, format("`tls_server_config` of cufit has no `{}`", printable(key, 60)));
    });
    if (!out_.has_tls || error_) return;
    if (out_.tls.certificate.empty()) wrong(map, "`cert_file` is missing");
    if (out_.tls.key.empty()) wrong(map, "`key_file` is missing");
    if (out_.tls.client != ClientCertificate::none && out_.tls.client_authority.empty())
      wrong(map, "`client_ca_file` is missing: whose certificates are good?");
    if (out_.tls.client == ClientCertificate::none && !out_.tls.client_authority.empty())
      wrong(map, "`client_ca_file` needs `client_auth_type: RequireAndVerifyClientCert`");
  }

  void read_http(const YAML::Node& map) {
    each(map, "`http_server_config`", [&](const std::string& key, const YAML::Node& value) {
      if (key == "http2") return;  // an offer to clients, and cufit offers HTTP/1.1 alone
      if (key != "headers")
        return wrong(value,
                     format("`http_server_config` of cufit has no `{}`", printable(key, 60)));
      each(value, "`headers`", [&](const std::string& name, const YAML::Node& content) {
        const std::string header = text(name, content);
        if (std::find(std::begin(k_headers), std::end(k_headers), name) == std::end(k_headers))
          return wrong(content, format("the header `{}` cannot be set", printable(name, 60)));
        if (printable(header) != header) return wrong(content, "a header of more than one line");
        out_.headers.emplace_back(name, header);
      });
    });
  }

  void read_users(const YAML::Node& map) {
    each(map, "`basic_auth_users`", [&](const std::string& name, const YAML::Node& value) {
      const std::string hash = text(name, value);
      if (name.empty() || contains(name, ":"))
        return wrong(value, "a user's name is empty or has a colon");
      if (!is_bcrypt_hash(hash))
        return wrong(value,
                     format("the password of `{}` is no bcrypt hash; `htpasswd -nBC 10 \"\"` "
                            "makes one",
                            printable(name, 60)));
      if (out_.users.size() >= k_most_users) return wrong(value, "too many users");
      out_.users.emplace_back(name, hash);
    });
  }

  const std::string& file_;
  WebConfig out_;
  std::optional<Error> error_;
  int line_ = -1;  // of the key whose value is read
};

}  // namespace

bool is_bcrypt_hash(std::string_view text) {
  if (text.size() != k_bcrypt_length || text[0] != '$' || text[1] != '2') return false;
  if ((text[2] != 'a' && text[2] != 'b' && text[2] != 'y') || text[3] != '$' || text[6] != '$')
    return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::string_view cost = text.substr(4, 2);
  return is_digit(cost[0]) && is_digit(cost[1]) && cost >= "04" && cost <= "31";
}

Result<WebConfig> parse_web_config(std::string_view text, const std::string& file) {
  if (text.size() > k_most_bytes)
    return fail(Code::malformed, format("`{}` has more than {}", file, format_bytes(k_most_bytes)));
  try {
    return WebConfigReader(file).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    return fail(Code::malformed,
                format("`{}`, line {}: {}", file, error.mark.line + 1, printable(error.msg, 200)));
  } catch (const std::exception& error) {
    return fail(Code::malformed, format("`{}`: {}", file, printable(error.what(), 200)));
  }
}

}  // namespace cufit::formats
