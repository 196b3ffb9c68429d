// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/ranks.h"

#include <gtest/gtest.h>

#include "formats/model/trace_facts.h"

namespace cufit::fit {
namespace ranks_test {

formats::TraceEvents group(const char* rank, const char* world, const char* differ = "") {
  formats::TraceEvents out;
  formats::add_fact(out, "rank", rank);
  formats::add_fact(out, "world_size", world);
  formats::add_fact(out, "ranks_differ", differ);
  return out;
}

formats::TraceEvents one_storage(uint64_t bytes, const char* source) {
  formats::TraceEvents out = group("0", "2");
  out.texts.push_back("aten::empty");
  out.texts.push_back(source);
  const auto op = static_cast<uint32_t>(out.texts.size() - 2);
  out.sites.push_back({op, op, op + 1, formats::TracePhase::forward, 0});
  out.events.push_back({bytes, 0, 0, formats::TraceEventKind::alloc});
  out.categories.push_back(formats::StorageCategory::unknown);
  return out;
}

TEST(Ranks, OfATraceThatSaysNothingAreOne) {
  EXPECT_EQ(world_of({}), 1u);
  EXPECT_EQ(rank_of({}), 0u);
  EXPECT_EQ(world_of(group("7", "18446744073709551615")), k_most_ranks);
  EXPECT_EQ(rank_of(group("99", "8")), 7u);
  EXPECT_EQ(world_of(group("0", "0")), 1u);
}

TEST(Ranks, AreTracedBesideTheFirstWhereTheyDifferOrAllAreAskedFor) {
  using Numbers = std::vector<uint64_t>;
  EXPECT_EQ(ranks_worth(group("0", "8"), false), Numbers{});
  EXPECT_EQ(ranks_worth(group("0", "8", "stages"), false), Numbers{7});
  EXPECT_EQ(ranks_worth(group("0", "1", "stages"), false), Numbers{});
  EXPECT_EQ(ranks_worth(group("0", "4", k_stages.data()), false), (Numbers{1, 2, 3}));
  EXPECT_EQ(ranks_worth(group("0", "16", k_stages.data()), false), Numbers{15});
  EXPECT_EQ(ranks_worth(group("0", "1"), true), Numbers{});
  EXPECT_EQ(ranks_worth(group("0", "4"), true), (Numbers{1, 2, 3}));
  EXPECT_EQ(ranks_worth(group("0", "64"), true), (Numbers{9, 18, 27, 36, 45, 54, 63}));
  EXPECT_EQ(ranks_worth(group("0", "65536"), true).back(), 65535u);
  EXPECT_EQ(ranks_worth(group("0", "65536"), true).size() + 1, k_most_traced_ranks);
}

TEST(Ranks, WithTheSameEventsAreAlikeWhateverTheirNumbers) {
  formats::TraceEvents first = one_storage(512, "train.py:1"), other = first;
  formats::add_fact(other, "rank", "1");
  EXPECT_TRUE(same_events(first, other));
  EXPECT_FALSE(same_events(first, one_storage(1024, "train.py:1")));
  EXPECT_FALSE(same_events(first, one_storage(512, "train.py:2")));
  other.events.push_back({0, 0, 0, formats::TraceEventKind::mark});
  EXPECT_FALSE(same_events(first, other));
}

TEST(Ranks, SayOfWhatTheLargerHasMore) {
  Prediction larger, smaller;
  larger.breakdown.activations = 500;
  larger.breakdown.weights = 300;
  smaller.breakdown.weights = 100;
  smaller.breakdown.gradients = 900;
  const std::optional<MoreOf> more = more_of(larger, smaller);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->part, "activations");
  EXPECT_EQ(more->bytes, 500u);
  EXPECT_FALSE(more_of(smaller, smaller));
}

WorldAnswer of(uint64_t world, uint64_t bytes) { return {world, bytes, bytes, bytes, 0, 0}; }

TEST(Ranks, TheLeastNumberIsFoundWithoutTracingAll) {
  const std::vector<uint64_t> worlds = {1, 2, 4, 8, 16, 32, 64};
  std::vector<uint64_t> asked;
  const AskWorld dealt = [&](uint64_t world) -> Result<std::optional<WorldAnswer>> {
    asked.push_back(world);
    return std::optional(of(world, 6400 / world));
  };
  Card card;
  card.usable = 900;
  Result<std::vector<WorldAnswer>> found = search_worlds(worlds, true, {card}, dealt);
  ASSERT_TRUE(found);
  EXPECT_EQ(least_world(card, *found), 8u);
  EXPECT_LT(asked.size(), worlds.size());
  EXPECT_FALSE(none_shrinks(*found));
  card.usable = 10;
  EXPECT_FALSE(least_world(card, *found));
  ASSERT_TRUE(found = search_worlds(worlds, false, {}, dealt));
  EXPECT_EQ(found->size(), worlds.size());
}

TEST(Ranks, NothingIsSearchedWhereMoreOfThemTakeNoLess) {
  size_t asked = 0;
  const AskWorld whole = [&](uint64_t world) -> Result<std::optional<WorldAnswer>> {
    ++asked;
    return std::optional(of(world, world == 1 ? 1000 : 1500 + world));
  };
  const Result<std::vector<WorldAnswer>> found =
      search_worlds({1, 2, 4, 8, 16}, true, {Card{}}, whole);
  ASSERT_TRUE(found);
  EXPECT_TRUE(none_shrinks(*found));
  EXPECT_EQ(asked, 3u);
}

TEST(Ranks, ANumberThatCannotBeTracedIsLeftOut) {
  const AskWorld some = [](uint64_t world) -> Result<std::optional<WorldAnswer>> {
    if (world == 2) return std::optional<WorldAnswer>();
    return std::optional(of(world, 6400 / world));
  };
  const Result<std::vector<WorldAnswer>> found = search_worlds({1, 2, 4}, false, {}, some);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 2u);
}

TEST(Ranks, ANumberThatCannotBeTracedHidesNoneBelowIt) {
  const AskWorld some = [](uint64_t world) -> Result<std::optional<WorldAnswer>> {
    if (world == 8) return std::optional<WorldAnswer>();
    return std::optional(of(world, 6400 / world));
  };
  Card card;
  card.usable = 1700;
  const Result<std::vector<WorldAnswer>> found =
      search_worlds({1, 2, 4, 8, 16, 32, 64}, true, {card}, some);
  ASSERT_TRUE(found);
  EXPECT_EQ(least_world(card, *found), 4u);
}

}  // namespace ranks_test
}  // namespace cufit::fit
