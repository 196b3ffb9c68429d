// SPDX-License-Identifier: Apache-2.0
#include "facts/together_answer.h"

#include <gtest/gtest.h>

namespace cufit::facts {
namespace together_answer_test {

Result<TogetherFacts> parse(const std::string& printed, std::vector<std::string>* left = nullptr) {
  std::vector<std::string> here;
  return parse_together_answer(printed, "/env/bin/python", left != nullptr ? *left : here);
}

TEST(TogetherAnswer, OfTwoGpus) {
  std::vector<std::string> left;
  const Result<TogetherFacts> read = parse(
      "noise of a sitecustomize\n\ncufit: {\"backend\": \"nccl\", \"ranks\": 2, \"copies\": "
      "{\"outcome\": \"ok\", \"said\": \"\", \"left\": [], \"bytes\": 268435456, \"pairs\": "
      "[{\"from\": 0, \"to\": 1, \"access\": true, \"wrong\": \"\", \"bytes_per_second\": "
      "3.5e11}]}, \"sum\": {\"outcome\": \"ok\", \"said\": \"\", \"warning\": \"\", \"left\": "
      "[77], "
      "\"via\": [\"P2P/CUMEM\"], \"torch\": \"2.11.0+cu130\", \"version\": \"2.28.9\", \"bytes\": "
      "1073741824, \"bus_bytes_per_second\": 3.4e11, \"small_seconds\": 1.5e-05}}\nlater noise\n",
      &left);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read->sum, "ok");
  EXPECT_EQ(read->sum.source.detail, "/env/bin/python");
  EXPECT_EQ(read->ranks, 2u);
  EXPECT_EQ(read->nccl, "2.28.9");
  EXPECT_EQ(read->via, std::vector<std::string>{"P2P/CUMEM"});
  EXPECT_EQ(*read->sum_bytes, uint64_t{1} << 30);
  EXPECT_DOUBLE_EQ(*read->bus_bytes_per_second, 3.4e11);
  EXPECT_EQ(*read->copies, "ok");
  ASSERT_EQ(read->pairs.size(), 1u);
  EXPECT_EQ(read->pairs[0].to, 1u);
  EXPECT_DOUBLE_EQ(read->pairs[0].bytes_per_second, 3.5e11);
  EXPECT_EQ(left, std::vector<std::string>{"77"});
}

TEST(TogetherAnswer, AHangHasNoNumbers) {
  const Result<TogetherFacts> read = parse(
      "\ncufit: {\"ranks\": 2, \"sum\": {\"outcome\": \"hung\", \"said\": \"rank 0: sum of 8 "
      "bytes\", \"warning\": \"NCCL WARN x\\u001b[31m\"}}\n");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read->sum, "hung");
  EXPECT_FALSE(read->bus_bytes_per_second);
  EXPECT_FALSE(read->copies);
  EXPECT_EQ(read->warning.find('\x1b'), std::string::npos) << "escapes reach the terminal";
}

TEST(TogetherAnswer, WhatIsNone) {
  for (const char* text :
       {"", "cufit: {}", "\ncufit: 7", "\ncufit: {\"sum\": {\"outcome\": \"fine\"}}",
        "\ncufit: {\"sum\": [\"outcome\"]}", "\ncufit: {\"sum\": {\"outcome\": \"ok\"",
        "\ncufit: {\"sum\": {\"outcome\": 3}}"})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(TogetherAnswer, NumbersThatCannotBeAreLeftOut) {
  const Result<TogetherFacts> read = parse(
      "\ncufit: {\"ranks\": -2, \"copies\": {\"outcome\": \"ok\", \"pairs\": [{\"from\": \"0\", "
      "\"to\": 1}, 5, {\"from\": 99999999, \"to\": 0}]}, \"sum\": {\"outcome\": \"ok\", "
      "\"bus_bytes_per_second\": -1, \"bytes\": 1.5, \"via\": [1, 2]}}");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ranks, 0u);
  EXPECT_TRUE(read->pairs.empty());
  EXPECT_FALSE(read->bus_bytes_per_second);
  EXPECT_FALSE(read->sum_bytes);
}

}  // namespace together_answer_test
}  // namespace cufit::facts
