// SPDX-License-Identifier: Apache-2.0
// Against nlohmann/json, which reads and writes the text: what stands between them may lose nothing.
#include "base/json.h"

#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cufit {
namespace json_test {

using Library = nlohmann::ordered_json;

Library random_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 3 ? 6 : 8)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return -static_cast<int64_t>(random()) - 1;
    case 3:
      return (uint64_t{random()} << 32) | random();
    case 4:
      return static_cast<double>(random()) / 1024 + 0.5;
    case 5:
      return std::string("text \"") + std::to_string(random()) + "\n\\ 显存";
    case 6: {
      Library out = Library::array();
      for (size_t i = random() % 5; i > 0; --i) out.push_back(random_value(random, depth + 1));
      return out;
    }
    default: {
      Library out = Library::object();
      for (size_t i = random() % 5; i > 0; --i)
        out["k" + std::to_string(random() % 100)] = random_value(random, depth + 1);
      return out;
    }
  }
}

TEST(Json, ReadsAndWritesWhatTheLibraryDoes) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_value(random, 0).dump();
    const std::optional<Json> read = Json::parse(text);
    ASSERT_TRUE(read) << text;
    // Members of what was read are sorted by name, as nlohmann::json keeps them.
    const nlohmann::json sorted = nlohmann::json::parse(text);
    EXPECT_EQ(read->dump(), sorted.dump());
    EXPECT_EQ(read->dump(2), sorted.dump(2));
    EXPECT_EQ(read->dump(-1, true), sorted.dump(-1, ' ', true));
  }
}

TEST(Json, KeepsTheOrderOfWhatIsBuilt) {
  Json out = {{"z", 1}, {"a", {1, 2}}, {"m", {{"y", true}, {"b", nullptr}}}};
  out["k"] = "text";
  out["z"] = 2;
  EXPECT_EQ(out.dump(), R"({"z":2,"a":[1,2],"m":{"y":true,"b":null},"k":"text"})");
  out.erase("a");
  EXPECT_EQ(out.dump(), R"({"z":2,"m":{"y":true,"b":null},"k":"text"})");
  out.update({{"k", 1}, {"new", 2.5}});
  EXPECT_EQ(out.dump(), R"({"z":2,"m":{"y":true,"b":null},"k":1,"new":2.5})");
}

TEST(Json, ListsOfNamesAndValuesAreObjectsAndNothingElseIs) {
  EXPECT_EQ(Json({{"a", 1}}).dump(), R"({"a":1})");
  EXPECT_EQ(Json({{"a", 1}, 2}).dump(), R"([["a",1],2])");
  EXPECT_EQ(Json({{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ(Json::array({{"a", 1}}).dump(), R"([["a",1]])");
  const std::vector<std::pair<std::string, std::string>> pairs = {{"a", "b"}};
  EXPECT_EQ(Json(pairs).dump(), R"([["a","b"]])");
  EXPECT_EQ(Json(std::map<std::string, int>{{"a", 1}}).dump(), R"({"a":1})");
  EXPECT_EQ(Json(std::vector<bool>{true, false}).dump(), "[true,false]");
}

TEST(Json, LooksMembersUp) {
  const Json read = Json::parse(R"({"b":"two","a":1,"b":"last","c":null,"d":[{}]})").value();
  EXPECT_EQ(read.text_at("b"), "last");
  EXPECT_EQ(read.size(), 4U);
  EXPECT_EQ(read.text_at("a"), "");
  EXPECT_EQ(read.text_at("none"), "");
  EXPECT_TRUE(read.contains("c"));
  EXPECT_FALSE(read.contains("e"));
  EXPECT_TRUE(read.find("e") == read.end());
  EXPECT_EQ(read.find("a").key(), "a");
  EXPECT_EQ(read.find("a")->natural(), 1U);
  EXPECT_TRUE(read.member("d")->is_array());
  EXPECT_EQ(Json(1).member("a"), nullptr);
}

TEST(Json, ConvertsNumbersAndNothingElse) {
  EXPECT_EQ(Json(-3).integer(), -3);
  EXPECT_EQ(Json(-3).number(), -3.0);
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).natural(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Json(2.75).integer(), 2);
  EXPECT_EQ(Json("12").integer(), 0);
  EXPECT_FALSE(Json(1).boolean());
  EXPECT_FALSE(Json(true).is_number());
  EXPECT_TRUE(Json::parse("-1")->is_number_integer());
  EXPECT_FALSE(Json::parse("-1")->is_number_unsigned());
  EXPECT_FALSE(Json::parse("1.0")->is_number_integer());
}

TEST(Json, MovesLeaveNothingBehind) {
  Json a = {{"x", {1, 2, 3}}};
  Json b = std::move(a);
  EXPECT_TRUE(a.is_null() && a.empty());  // NOLINT: what a move leaves is promised
  b = Json(*b.member("x"));
  EXPECT_EQ(b.dump(), "[1,2,3]");
  b = std::move(b[1]);  // a part of itself
  EXPECT_EQ(b.dump(), "2");
  Json c = {{"x", {{"y", "deep"}}}};
  c = *c.member("x");
  EXPECT_EQ(c.dump(), R"({"y":"deep"})");
  EXPECT_DEATH(c.push_back(1), "only an array");
  EXPECT_DEATH(Json::array()["x"] = 1, "only an object");
}

TEST(Json, HostileTextsEndInNothing) {
  EXPECT_FALSE(Json::parse(""));
  EXPECT_FALSE(Json::parse("{\"a\":1"));
  EXPECT_FALSE(Json::parse("[1] 2"));
  EXPECT_FALSE(Json::parse("1e999"));
  EXPECT_FALSE(Json::parse("\"\xff\""));
  EXPECT_FALSE(Json::parse(std::string(1'000'000, '[')));
  std::string deep(1'000'000, '[');
  deep.append(1'000'000, ']');
  EXPECT_FALSE(Json::parse(deep));
  EXPECT_TRUE(Json::parse(std::string(512, '[') + std::string(512, ']')));
  EXPECT_EQ(damaged_json_byte("{\"a\": x}"), 7U);
  EXPECT_EQ(damaged_json_byte("{}"), 0U);
  EXPECT_EQ(damaged_json_byte("1e999"), 0U);
  EXPECT_LE(sizeof(Json), 32U);  // of a file of 64 MB that is one list of numbers: 1 GB
  EXPECT_EQ(Json("\xff").dump(), "\"\xef\xbf\xbd\"");
  // Two of each of a hundred thousand names: quadratic would take minutes.
  std::string doubles = "{";
  for (int i = 0; i < 200'000; ++i) doubles += "\"" + std::to_string(i % 100'000) + "\":1,";
  EXPECT_EQ(Json::parse(doubles + "\"z\":0}")->size(), 100'001U);
}

}  // namespace json_test
}  // namespace cufit
