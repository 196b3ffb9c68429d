// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/loader_answer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/format.h"
#include "support/places.h"

namespace cufit::formats {
namespace loader_answer_test {

std::string seed() {
  std::ifstream file(test::source_dir() + "/fuzz/seeds/loader_answer/done");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = seed();
  return text.replace(text.find(from), from.size(), to);
}

TEST(LoaderAnswer, IsReadAsFarAsItCame) {
  const auto read = parse_loader_answer(seed());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->place, "train.py:4");
  EXPECT_EQ(read->batches, 10u);
  EXPECT_EQ(read->other_loaders, std::vector<std::string>{"a.py:3"});
  EXPECT_FALSE(read->trying);
  EXPECT_EQ(read->step_seconds, 0.1);
  ASSERT_EQ(read->alone.size(), 1u);
  EXPECT_EQ(read->alone[0].seconds, 0.1);
  const auto early = parse_loader_answer(with(R"("step":{"steps":20,"seconds":0.1},)", ""));
  ASSERT_TRUE(early);
  EXPECT_FALSE(early->step_seconds);
}

TEST(LoaderAnswer, WhatIsNoneIsNamed) {
  EXPECT_FALSE(parse_loader_answer("[]"));
  for (const auto& [from, to] : {std::pair("\"num_workers\":2", "\"num_workers\":-2"),
                                 std::pair("\"cuda\":true", "\"cuda\":1"),
                                 std::pair("\"wait_seconds\":0.5", "\"wait_seconds\":1e300"),
                                 std::pair("\"iterable\":false", "\"iterable\":0"),
                                 std::pair("\"loader\":{", "\"loader_\":{")}) {
    const auto read = parse_loader_answer(with(from, to));
    ASSERT_FALSE(read) << to;
    EXPECT_EQ(read.error().code, Code::malformed);
  }
}

}  // namespace loader_answer_test
}  // namespace cufit::formats
