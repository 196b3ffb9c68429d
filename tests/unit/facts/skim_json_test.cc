// SPDX-License-Identifier: Apache-2.0
#include "facts/skim_json.h"

#include <gtest/gtest.h>

namespace cufit::facts {
namespace {

TEST(SkimJson, DropsAMemberAtTheTopAndOneBelow) {
  EXPECT_EQ(without_member(R"({"a":1,"envs":[{"x":"]}"}],"b":2})", "envs"),
            R"({"a":1,"envs":null,"b":2})");
  EXPECT_EQ(without_member(R"({"facts":{"envs": {"q":[1,2]}, "z":3}})", "envs"),
            R"({"facts":{"envs": null, "z":3}})");
  EXPECT_EQ(without_member(R"({"envs":"a\\\"b","c":1})", "envs"), R"({"envs":null,"c":1})");
  EXPECT_EQ(without_member(R"({"envs":17,"c":1})", "envs"), R"({"envs":null,"c":1})");
  EXPECT_EQ(without_member(R"({"c":1,"envs":17})", "envs"), R"({"c":1,"envs":null})");
}

TEST(SkimJson, LeavesWhatOnlyLooksLikeIt) {
  for (const char* text :
       {R"({"a":{"b":{"envs":[1]}}})", R"({"a":"\"envs\": [1]"})", R"(["envs",1])", R"({"envs")",
        R"({"envs":)", R"({"envs":[1,2)", R"({"envs":"abc)", "", "\"", "garbage \"envs\":"})
    EXPECT_EQ(without_member(text, "envs"), text);
}

}  // namespace
}  // namespace cufit::facts
