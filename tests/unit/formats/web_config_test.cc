// SPDX-License-Identifier: Apache-2.0
#include "formats/system/web_config.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace web_config_test {

constexpr const char* k_hash = "$2y$10$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu";

std::string problem(const std::string& text) {
  const Result<WebConfig> config = parse_web_config(text, "web.yml");
  return config ? "" : config.error().what;
}

TEST(WebConfig, IsReadWhole) {
  const Result<WebConfig> config = parse_web_config(
      "tls_server_config:\n  cert_file: a.crt\n  key_file: a.key\n"
      "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: c.crt\n  min_version: "
      "TLS13\n"
      "http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"
      "basic_auth_users:\n  ann: " +
          std::string(k_hash) + "\n",
      "web.yml");
  ASSERT_TRUE(config) << config.error().what;
  EXPECT_TRUE(config->has_tls);
  EXPECT_EQ(config->tls.certificate, "a.crt");
  EXPECT_EQ(config->tls.key, "a.key");
  EXPECT_EQ(config->tls.client, ClientCertificate::required);
  EXPECT_EQ(config->tls.client_authority, "c.crt");
  EXPECT_EQ(config->tls.least, 13);
  ASSERT_EQ(config->headers.size(), 1u);
  EXPECT_EQ(config->headers[0].second, "deny");
  ASSERT_EQ(config->users.size(), 1u);
  EXPECT_EQ(config->users[0].first, "ann");
  EXPECT_EQ(config->users[0].second, k_hash);
}

TEST(WebConfig, MayBeEmpty) {
  for (const char* text : {"", "# nothing\n", "basic_auth_users:\n", "tls_server_config:\n"}) {
    const Result<WebConfig> config = parse_web_config(text, "web.yml");
    ASSERT_TRUE(config) << text;
    EXPECT_FALSE(config->has_tls);
    EXPECT_TRUE(config->users.empty());
  }
}

// What is not understood must not seem to be in force.
TEST(WebConfig, WithAMistakeIsRefusedWithItsLine) {
  EXPECT_EQ(problem("basic_auth_user: {}\n"),
            "`web.yml`, line 1: no key is called `basic_auth_user` here");
  EXPECT_EQ(problem("a: b\n"), "`web.yml`, line 1: no key is called `a` here");
  EXPECT_EQ(problem("basic_auth_users:\n  ann: secret\n"),
            "`web.yml`, line 2: the password of `ann` is no bcrypt hash; `htpasswd -nBC 10 \"\"` "
            "makes one");
  EXPECT_EQ(problem(format("basic_auth_users:\n  'a:b': {}\n", k_hash)),
            "`web.yml`, line 2: a user's name is empty or has a colon");
  EXPECT_EQ(problem(format("basic_auth_users:\n  a: {0}\n  a: {0}\n", k_hash)),
            "`web.yml`, line 3: `a` is there twice");
  EXPECT_EQ(problem("tls_server_config:\n  key_file: a\n"),
            "`web.yml`, line 1: `cert_file` is missing");
  EXPECT_EQ(problem("tls_server_config: [a]\n"),
            "`web.yml`, line 1: `tls_server_config` is no map");
  EXPECT_EQ(problem("tls_server_config: {cert_file: [], key_file: b}\n"),
            "`web.yml`, line 1: `cert_file` is no text");
  EXPECT_EQ(problem("tls_server_config: {cert_file: a, key_file: b, client_auth_type: "
                    "RequireAndVerifyClientCert}"),
            "`web.yml`, line 1: `client_ca_file` is missing: whose certificates are good?");
  EXPECT_EQ(problem("http_server_config:\n  headers:\n    X-Frame-Options: \"a\\r\\nb\"\n"),
            "`web.yml`, line 3: a header of more than one line");
  EXPECT_EQ(problem("basic_auth_user:\n  ann: x\n"),
            "`web.yml`, line 1: no key is called `basic_auth_user` here");
  EXPECT_EQ(problem("basic_auth_users:\n  ann:\n"), "`web.yml`, line 2: `ann` is no text");
  EXPECT_TRUE(starts_with(problem("a: [\n"), "`web.yml`, line 2: "));
  EXPECT_TRUE(starts_with(problem(std::string(300 * 1024, ' ')), "`web.yml` has more than"));
}

TEST(WebConfig, KnowsBcrypt) {
  EXPECT_TRUE(is_bcrypt_hash(k_hash));
  for (const char* text : {"", "secret", "$1$abc", "$2y$10$abc"})
    EXPECT_FALSE(is_bcrypt_hash(text));
}

}  // namespace web_config_test
}  // namespace cufit::formats
