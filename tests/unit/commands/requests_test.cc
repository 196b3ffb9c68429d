// SPDX-License-Identifier: Apache-2.0
// From words to a request: what a member's type says of its option.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "commands/args.h"

namespace cufit::commands {
namespace requests_test {

enum class Level { low, high };

struct Base {
  std::optional<std::string> device;
};
struct Request : Base {
  std::vector<std::string> paths, gpus;
  std::string out = ".";
  Level level = Level::high;
  std::optional<Level> other;
  bool json = false;
};

constexpr Option k_options[] = {
    option<&Request::paths>("PATH").needed(),
    option<&Request::gpus>("--gpu", "NAME"),
    option<&Request::out>("-o,--out", "DIR"),
    option<&Request::level>("--level", "LEVEL", "low high"),
    option<&Request::other>("--other", "LEVEL", "low high"),
    option<&Request::json>("--json"),
    inherited_option<Request, &Request::device>("--device", "N"),
};

int run_nothing(const Context&, const Request&) { return 0; }

Result<Request> request_of(std::vector<const char*> words, CommonOptions* common = nullptr) {
  const Command row = command<Request, run_nothing>("test", k_options);
  Result<ParsedArguments> parsed =
      parse_arguments(row, static_cast<int>(words.size()), words.data());
  if (!parsed) return parsed.error();
  if (common != nullptr) *common = parsed->common;
  return *static_cast<const Request*>(parsed->request.get());
}

TEST(Requests, KeepTheirDefaultsWhereNothingIsTyped) {
  const Request request = request_of({}).value();
  EXPECT_TRUE(request.paths.empty() && request.gpus.empty());
  EXPECT_EQ(request.out, ".");
  EXPECT_EQ(request.level, Level::high);
  EXPECT_FALSE(request.other || request.device || request.json);
}

TEST(Requests, AreFilledByType) {
  const Request request =
      request_of({"a", "--gpu", "x", "b", "--gpu=y", "-o", "e", "-o", "e", "--level", "low",
                  "--other", "high", "--json", "--device", "3"})
          .value();
  EXPECT_EQ(request.paths, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.gpus, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.out, "e");  // said twice, meant once
  EXPECT_EQ(request.level, Level::low);
  EXPECT_EQ(request.other, Level::high);
  EXPECT_EQ(request.device, "3");
  EXPECT_TRUE(request.json);
}

// One of two values would be dropped without a word; those that all commands take may stand in an alias.
TEST(Requests, OneValueIsNotTwo) {
  for (const std::vector<const char*>& words : {std::vector<const char*>{"-o", "d", "-o", "e"},
                                                {"--level", "low", "--json", "--level", "high"}}) {
    const Result<Request> request = request_of(words);
    ASSERT_FALSE(request) << words[0];
    EXPECT_EQ(request.error().code, Code::usage);
    EXPECT_NE(request.error().text().find("is given twice"), std::string::npos)
        << request.error().text();
  }
  CommonOptions common;
  ASSERT_TRUE(request_of({"--lang", "en", "--lang", "zh"}, &common));
  EXPECT_EQ(common.language, Language::zh);
}

TEST(Requests, CommonOptionsStandApart) {
  CommonOptions common;
  ASSERT_TRUE(request_of({"--lang", "zh", "--color", "never", "-h"}, &common));
  EXPECT_EQ(common.language, Language::zh);
  EXPECT_EQ(common.colour, Colour::never);
  EXPECT_TRUE(common.help);
  ASSERT_TRUE(request_of({}, &common));
  EXPECT_FALSE(common.language || common.help);
  EXPECT_EQ(common.colour, Colour::automatic);
}

TEST(Requests, WhatIsNoOptionIsRefused) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--jsn"}, {"--level", "middle"}, {"--gpu"}, {"--lang", "fr"}}) {
    const Result<Request> request = request_of(words);
    ASSERT_FALSE(request) << words[0];
    EXPECT_EQ(request.error().code, Code::usage);
  }
  EXPECT_NE(request_of({"--jsn"}).error().what.find("did you mean `--json`"), std::string::npos);
}

// A row that is bound to another command's request would write into memory of another shape.
TEST(Requests, EveryOptionFillsTheRequestOfItsCommand) {
  for (const Command& row : table()) {
    ASSERT_NE(row.run, nullptr) << row.name;
    for (const Option& one : row.options)
      EXPECT_EQ(one.request_type, row.request_type) << row.name << " " << one.flags;
  }
}

}  // namespace requests_test
}  // namespace cufit::commands
