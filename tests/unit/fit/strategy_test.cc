// SPDX-License-Identifier: Apache-2.0
#include "fit/strategy.h"

#include <gtest/gtest.h>

#include "knowledge/knowledge.h"

namespace cufit::fit {
namespace strategy_test {

TEST(Strategy, IsParsed) {
  EXPECT_EQ(parse_strategy("ddp")->kind, "ddp");
  EXPECT_FALSE(parse_strategy("zero1")->shards());
  EXPECT_EQ(parse_strategy("zero2")->kind, "fsdp");
  EXPECT_FALSE(parse_strategy("zero2")->reshard);
  EXPECT_TRUE(parse_strategy("zero3")->reshard);
  EXPECT_FALSE(parse_strategy("fsdp:no-reshard")->reshard);
  const Strategy hybrid = *parse_strategy("hsdp:4");
  EXPECT_EQ(hybrid.kind, "hsdp");
  EXPECT_EQ(hybrid.group(), 4u);
  EXPECT_TRUE(hybrid.shards());
  EXPECT_EQ(parse_strategy("fsdp")->group(), 1u);
  for (const char* wrong : {"", "tp", "tp:", "tp:1", "tp:0", "tp:x", "tp:-2", "hsdp:99999", "ddp:2",
                            "FSDP", "fsdp:reshard", "tp:2:2"})
    EXPECT_FALSE(parse_strategy(wrong)) << wrong;
}

TEST(Strategy, OfALoraEachRankHasACopy) {
  EXPECT_EQ(usual_strategy("full").kind, "fsdp");
  EXPECT_EQ(usual_strategy("lora").kind, "ddp");
  EXPECT_EQ(usual_strategy("qlora").kind, "ddp");
}

TEST(Strategy, EachHasWords) {
  for (const char* name :
       {"ddp", "zero1", "zero2", "zero3", "fsdp", "fsdp:no-reshard", "hsdp:2", "tp:2"})
    EXPECT_FALSE(knowledge::Knowledge::builtin()
                     .message("report.fit.warning.model_" + parse_strategy(name)->note(), "en")
                     .empty())
        << name;
  EXPECT_NE(parse_strategy("fsdp")->note(), parse_strategy("fsdp:no-reshard")->note());
}

}  // namespace strategy_test
}  // namespace cufit::fit
