// SPDX-License-Identifier: Apache-2.0
#include "formats/python/index_page.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace index_page_test {

TEST(IndexPage, IsRead) {
  const Result<IndexPage> page = parse_index_page(R"({
    "meta": {"api-version": "1.1"}, "name": "Torch", "versions": ["2.7.1"],
    "files": [
      {"filename": "torch-2.7.1-cp311-cp311-manylinux_2_28_x86_64.whl", "url": "../files/t.whl",
       "hashes": {"sha256": "ab"}, "requires-python": ">=3.9", "size": 821000000, "yanked": false},
      {"filename": "torch-2.7.0.tar.gz", "url": "u", "yanked": ""},
      {"filename": "no-url.whl"}, 7]})",
                                                  "index");
  ASSERT_TRUE(page) << page.error().text();
  EXPECT_EQ(page->name, "torch");
  EXPECT_EQ(page->skipped, 2u);
  ASSERT_EQ(page->files.size(), 2u);
  EXPECT_EQ(page->files[0].size, 821000000u);
  EXPECT_EQ(page->files[0].requires_python, ">=3.9");
  EXPECT_FALSE(page->files[0].yanked);
  EXPECT_TRUE(page->files[1].yanked);  // a reason, though an empty one
}

TEST(IndexPage, ThatIsNoneIsAnError) {
  const auto what = [](const char* text) {
    const Result<IndexPage> page = parse_index_page(text, "http://index.example/torch/");
    return page ? std::string() : page.error().text();
  };
  EXPECT_EQ(what("<!DOCTYPE html>"),
            "http://index.example/torch/: not a page of a package index in JSON");
  EXPECT_EQ(what("{}"),
            "http://index.example/torch/: version `` of the simple API; cufit reads 1.x");
  EXPECT_EQ(what(R"({"meta": {"api-version": "2.0"}, "files": []})"),
            "http://index.example/torch/: version `2.0` of the simple API; cufit reads 1.x");
  EXPECT_EQ(what(R"({"meta": {"api-version": "1.0"}, "files": {}})"),
            "http://index.example/torch/: no list of files");
}

}  // namespace index_page_test
}  // namespace cufit::formats
