// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_config.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace index_config_test {

std::string listed(const std::vector<IndexUrl>& indexes) {
  std::string out;
  for (const IndexUrl& index : indexes)
    out += index.url + (index.name.empty() ? "" : " " + index.name) +
           (index.is_default ? " default" : "") + (index.is_explicit ? " explicit" : "") + "\n";
  return out;
}

TEST(IndexConfig, OfUv) {
  const std::string text = R"(
index-url = "https://mirror.example/simple"
extra-index-url = ["https://more.example/simple", 7, "ftp://no.example"]
[[index]]
name = "torch"
url = "https://torch.example/whl/cu126"
explicit = true
[[index]]
url = "https://own.example/simple"
default = true
[pip]
index-url = "https://pip.example/simple"
)";
  const std::string expected =
      "https://torch.example/whl/cu126 torch explicit\n"
      "https://own.example/simple default\n"
      "https://more.example/simple\n"
      "https://mirror.example/simple default\n"
      "https://pip.example/simple default\n";
  const auto plain = parse_uv_indexes(text, "uv.toml", false);
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(listed(*plain), expected);
  const auto project = parse_uv_indexes("[tool.uv]\nindex-url = \"http://127.0.0.1/simple\"\n",
                                        "pyproject.toml", true);
  ASSERT_TRUE(project);
  EXPECT_EQ(listed(*project), "http://127.0.0.1/simple default\n");
  EXPECT_TRUE(parse_uv_indexes("[tool]\nuv = 3\n", "pyproject.toml", true)->empty());
  const auto damaged = parse_uv_indexes("a = 1\nb = [\n", "uv.toml", false);
  ASSERT_FALSE(damaged);
  EXPECT_TRUE(starts_with(damaged.error().text(), "uv.toml, line "));
}

TEST(IndexConfig, OfPip) {
  EXPECT_EQ(
      listed(parse_pip_indexes("# pip\n[global]\ntimeout = 9\nindex_url: https://a.example/s\n"
                               "extra-index-url =\n  https://b.example/s\n  "
                               "https://c.example/s\n",
                               "pip.conf")),
      "https://b.example/s\nhttps://c.example/s\nhttps://a.example/s default\n");
  EXPECT_EQ(
      listed(parse_pip_indexes("[global]\nindex-url = https://a.example\n[install]\nindex-url "
                               "= https://b.example\n[",
                               "pip.conf")),
      "https://b.example default\n");
}

TEST(IndexConfig, HidesCredentials) {
  EXPECT_EQ(without_credentials("https://me:se@cret@host.example/s and http://u@x/"),
            "https://***@host.example/s and http://***@x/");
  EXPECT_EQ(without_credentials("https://host.example/a@b"), "https://host.example/a@b");
  EXPECT_EQ(without_credentials("https://u:p@"), "https://***@");
  EXPECT_EQ(without_credentials("plain"), "plain");
  EXPECT_EQ(without_credentials("`https://u:p@host/simple/?token=x&a=b`: 404; http://y/?z#q ? ok"),
            "`https://***@host/simple/?***`: 404; http://y/?***#q ? ok");
  EXPECT_EQ(without_credentials("https://host/?"), "https://host/?");
}

TEST(IndexConfig, TakesNamedUrls) {
  const IndexUrl named = parse_index_word("torch=https://t.example/?a=b", "--index");
  EXPECT_EQ(named.name, "torch");
  EXPECT_EQ(named.url, "https://t.example/?a=b");
  EXPECT_EQ(parse_index_word("https://t.example/?a=b", "--index").url, "https://t.example/?a=b");
}

}  // namespace index_config_test
}  // namespace cufit::formats
