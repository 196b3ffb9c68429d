// SPDX-License-Identifier: Apache-2.0
#include "host/install/index_client.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "host/install/http.h"
#include "support/fake_root.h"
#include "support/index_server.h"

namespace cufit::host {
namespace index_client_test {

class IndexClient : public testing::Test {
 protected:
  void SetUp() override {
    if (http_library().empty()) GTEST_SKIP() << "no libcurl here";
    ASSERT_TRUE(server_.runs());
  }
  Result<IndexAnswer> ask(const std::string& path, IndexOptions options = {}) {
    return ask_index(host_, server_.url(path), "Torch", options, interrupts_);
  }
  std::string problem(const std::string& path) {
    const Result<IndexAnswer> answer = ask(path);
    return answer ? "answered" : answer.error().text();
  }

  test::IndexServer server_;
  RealHost host_{"/", {{"XDG_CACHE_HOME", server_.folder() + "/cache"}}};
  Interrupts interrupts_;
};

TEST_F(IndexClient, AsksOnceAndThenOnlyWhetherAnythingChanged) {
  const auto first = ask("/simple/");
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->how, IndexAnswer::How::fetched);
  ASSERT_EQ(first->page.files.size(), 2u);
  EXPECT_TRUE(first->page.files[1].yanked);
  const auto second = ask("/simple");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->how, IndexAnswer::How::unchanged);
  EXPECT_EQ(second->page.files.size(), 2u);
  EXPECT_EQ(server_.requests(), "/simple/torch/ 200 -\n/simple/torch/ 304 \"one\"\n");
}

TEST_F(IndexClient, WithoutTheNetworkUsesTheCacheAndSaysSo) {
  IndexOptions offline;
  offline.offline = true;
  const auto nothing = ask("/simple", offline);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::not_found);
  ASSERT_TRUE(ask("/simple"));
  const auto kept = ask("/simple", offline);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->how, IndexAnswer::How::offline);
  server_.stop();
  const auto stale = ask("/simple");
  ASSERT_TRUE(stale) << stale.error().text();
  EXPECT_EQ(stale->how, IndexAnswer::How::stale);
  EXPECT_NE(stale->problem, "");
}

TEST_F(IndexClient, SaysWhatIsWrongWithAnIndex) {
  EXPECT_EQ(problem("/html"), format("`{}` answers `text/html`, not JSON: the index has no JSON "
                                     "API (PEP 691)",
                                     server_.url("/html/torch/")));
  EXPECT_EQ(problem("/garbage"),
            format("`{}`: not a page of a package index in JSON", server_.url("/garbage/torch/")));
  EXPECT_EQ(problem("/broken"), format("`{}` answers HTTP 500", server_.url("/broken/torch/")));
  EXPECT_EQ(problem("/huge"),
            format("`{}`: the answer is larger than 64 MiB", server_.url("/huge/torch/")));
  const auto absent = ask_index(host_, server_.url("/simple"), "absent", {}, interrupts_);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::not_found);
}

TEST_F(IndexClient, GivesUpOnAServerThatStalls) {
  IndexOptions options;
  options.stall_seconds = 1;
  const auto answer = ask("/slow", options);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::timeout) << answer.error().text();
}

TEST_F(IndexClient, FollowsRedirectsAndKeepsPasswordsToItself) {
  EXPECT_TRUE(ask("/moved"));
  const std::string place = "@127.0.0.1:" + server_.port() + "/private";
  EXPECT_TRUE(ask_index(host_, "http://me:secret" + place, "torch", {}, interrupts_));
  const auto refused = ask_index(host_, "http://me:wrong" + place, "torch", {}, interrupts_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::no_permission);
  EXPECT_EQ(refused.error().text(), "`http://***" + place + "/torch/` answers HTTP 401");
}

std::string listed(const IndexSettings& settings) {
  std::string out = settings.tool + ":";
  for (const formats::IndexUrl& index : settings.indexes)
    out += " " + index.url + (index.is_default ? "!" : "");
  return out;
}

TEST(IndexSettings, ComeFromUvThenFromPip) {
  test::FakeRoot root;
  const auto settings = [&](std::map<std::string, std::string> variables) {
    variables["HOME"] = "/home/me";
    return listed(
        index_settings(RealHost(root.path(), std::move(variables)), "/home/me/project/a"));
  };
  EXPECT_EQ(settings({}), ":");
  root.file("/etc/pip.conf", "[global]\nindex-url = https://pip.example/s\n");
  EXPECT_EQ(settings({}), "pip: https://pip.example/s!");
  EXPECT_EQ(settings({{"PIP_INDEX_URL", "https://v.example"},
                      {"PIP_EXTRA_INDEX_URL", "https://e.example"}}),
            "pip: https://e.example https://v.example!");
  root.file("/home/me/.config/uv/uv.toml", "index-url = \"https://user.example/s\"\n");
  EXPECT_EQ(settings({}), "uv: https://user.example/s!");
  root.file("/home/me/project/pyproject.toml",
            "[[tool.uv.index]]\nname = \"t\"\nurl = \"https://t.example\"\n");
  EXPECT_EQ(settings({}), "uv: https://t.example https://user.example/s!");
  EXPECT_EQ(settings({{"UV_INDEX", "a=https://a.example https://b.example"},
                      {"UV_DEFAULT_INDEX", "https://d.example"}}),
            "uv: https://a.example https://b.example https://t.example https://d.example!");
  EXPECT_EQ(settings({{"UV_NO_CONFIG", "1"}}), "pip: https://pip.example/s!");
}

}  // namespace index_client_test
}  // namespace cufit::host
