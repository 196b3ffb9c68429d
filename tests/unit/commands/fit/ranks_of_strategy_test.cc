// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "commands/fit/fit_ranks.h"

namespace cufit::commands {
namespace ranks_of_strategy_test {

using Worlds = std::vector<uint64_t>;

Result<RanksWanted> wanted(const char* gpus, const char* strategy, bool all_cards = false) {
  FitProgramRequest program;
  program.world = gpus;
  return ranks_of_strategy(ranks_wanted(program).value(), *fit::parse_strategy(strategy),
                           all_cards);
}

TEST(RanksOfStrategy, OneNumberIsTracedAlone) {
  const RanksWanted one = wanted("8", "fsdp").value();
  EXPECT_EQ(one.worlds, Worlds{8});
  EXPECT_FALSE(one.search);
  EXPECT_EQ(wanted("4,2", "fsdp", true)->worlds, (Worlds{4, 2}));
}

TEST(RanksOfStrategy, WithEveryCardTheLeastNumberIsLookedFor) {
  const RanksWanted all = wanted("6", "fsdp", true).value();
  EXPECT_TRUE(all.search);
  EXPECT_EQ(all.own, 6u);
  EXPECT_EQ(all.worlds, (Worlds{1, 2, 4, 6, 8, 16, 32, 64}));
}

TEST(RanksOfStrategy, NumbersAreOfWholeGroups) {
  const RanksWanted split = wanted("auto", "tp:3").value();
  EXPECT_EQ(split.own, 9u);  // the groups that fill a node of eight
  EXPECT_EQ(split.worlds, (Worlds{3, 9}));
  EXPECT_EQ(wanted("auto", "hsdp:4")->worlds, (Worlds{4, 8, 16, 32, 64}));
  EXPECT_EQ(wanted("auto", "fsdp")->own, 8u);
  EXPECT_FALSE(wanted("6", "hsdp:4"));
  EXPECT_FALSE(wanted("4,6", "tp:4"));
}

}  // namespace ranks_of_strategy_test
}  // namespace cufit::commands
