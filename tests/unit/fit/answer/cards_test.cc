// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/cards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "base/format.h"
#include "formats/model/trace_facts.h"

namespace cufit::fit {
namespace cards_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

Card named(const char* name, bool asked = true) {
  Card out = card_of(*tables().find_gpu(name), tables());
  out.asked = asked;
  return out;
}

TEST(Cards, OfASizeGiveUpTheContextOfTheDefaultCard) {
  constexpr uint64_t gib = uint64_t{1} << 30;
  const Card card = card_of_size("24 GiB", 24 * gib, tables());
  const Card standard = traced_card({}, tables());
  EXPECT_EQ(card.name, "24 GiB");
  EXPECT_EQ(card.cc, "");
  EXPECT_GT(standard.outside_allocator, 0u);
  EXPECT_EQ(card.usable, 24 * gib - standard.outside_allocator);
  EXPECT_EQ(card_of_size("1 B", 1, tables()).usable, 0u);
}

TEST(Cards, AllOfTheTableComeOnceTheSmallestFirst) {
  const std::vector<Card> all = all_cards(tables());
  ASSERT_GT(all.size(), 20u);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const Card& a, const Card& b) { return a.usable < b.usable; }));
  for (const Card& card : all) {
    EXPECT_FALSE(card.asked);
    EXPECT_NE(tables().find_gpu(card.name)->segment, "embedded") << card.name;
    EXPECT_GE(*parse_compute_capability(card.cc), (ComputeCapability{5, 0})) << card.name;
  }
}

TEST(Cards, OfOneNameAreOneAndAskedWhereOneIs) {
  const std::vector<Card> cards =
      each_once({named("RTX 3090", false), named("RTX 4090"), named("RTX 3090")});
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].name, named("RTX 3090").name);
  EXPECT_TRUE(cards[0].asked);
}

TEST(Cards, TheTracedOneIsTheFirstThatWasAskedForByName) {
  Card size = card_of_size("24 GiB", uint64_t{24} << 30, tables());
  size.asked = true;
  EXPECT_EQ(traced_card({size, named("RTX 4090", false), named("RTX 3090")}, tables()).name,
            named("RTX 3090").name);
  EXPECT_EQ(traced_card({size}, tables()).name, traced_card({}, tables()).name);
}

TEST(Cards, NcclTakesMemoryBesideTheAllocator) {
  formats::TraceEvents events;
  EXPECT_EQ(nccl_bytes(events, named("H100 SXM5 80GB"), tables()), 0u);
  formats::add_fact(events, "world", "1");
  EXPECT_EQ(nccl_bytes(events, named("H100 SXM5 80GB"), tables()), 0u);
  formats::add_fact(events, "world", "2");
  const uint64_t world = nccl_bytes(events, named("H100 SXM5 80GB"), tables());
  EXPECT_EQ(world, uint64_t{938} << 20);
  formats::add_fact(events, "nccl_communicators", "2");
  formats::add_fact(events, "nccl_rings", "2");
  EXPECT_EQ(nccl_bytes(events, named("H100 SXM5 80GB"), tables()), world + (uint64_t{485} << 20));
  for (const char* key : {"nccl_communicators", "nccl_rings", "nccl_sends", "nccl_receives"})
    formats::add_fact(events, key, "18446744073709551615");
  EXPECT_LT(nccl_bytes(events, named("H100 SXM5 80GB"), tables()), uint64_t{1} << 41);
  Card card = named("H100 SXM5 80GB");
  const Card alone = card;
  take_outside(card, world);
  EXPECT_EQ(card.usable, alone.usable - world);
  EXPECT_EQ(card.outside_allocator, alone.outside_allocator + world);
  take_outside(card, UINT64_MAX / 2);
  EXPECT_EQ(card.usable, 0u);
}

TEST(Cards, SetupHasWhatIsTheCards) {
  const Card card = named("RTX 3090");
  const fit::Setup setup = setup_on({}, card);
  EXPECT_EQ(setup.total_memory, card.total);
  EXPECT_EQ(setup.outside_allocator, card.outside_allocator);
  EXPECT_EQ(setup.libraries.cc, (ComputeCapability{8, 6}));
  EXPECT_EQ(setup.capacity, 0u);
}

TEST(Cards, ThatAreAlikeAreAnsweredOnce) {
  std::mutex lock;
  std::vector<std::string> asked;
  const std::vector<CardAnswer> answers = answer_once(
      {named("RTX 3090"), named("RTX 4090", false), named("RTX 3090 Ti")},
      [](const Card& a, const Card& b) { return a.cc == b.cc; },
      [&](CardAnswer& card) {
        const std::lock_guard guard(lock);
        asked.push_back(card.name);
        card.fits = card.cc == "8.6";
        card.largest.batch = card.cc == "8.6" ? 7 : 3;
        card.largest_retries = 1;
      });
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(asked, (std::vector<std::string>{named("RTX 3090").name, named("RTX 4090").name}));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[2].name, named("RTX 3090 Ti").name);  // its own, with the other's answer
  EXPECT_TRUE(answers[2].fits);
  EXPECT_EQ(answers[2].largest.batch, 7u);
  EXPECT_EQ(answers[2].largest_retries, 1u);
  EXPECT_EQ(answers[1].largest.batch, 3u);
  EXPECT_FALSE(answers[1].asked);

  std::vector<CardAnswer> later = answers;
  later[0].asked = false;
  EXPECT_EQ(first_asked(later), &later[2]);
  EXPECT_EQ(first_asked({}), nullptr);
}

TEST(Cards, AreToldToTheTracerByNvmlsName) {
  const Card card = named("H200 SXM");
  EXPECT_EQ(pretended_gpu(card, tables()), format("NVIDIA H200,9.0,{}", card.total));
}

TEST(Cards, CudnnIsAskedForFourCapabilitiesAtMost) {
  const Card traced = named("H200 SXM");
  const auto count = [](const std::string& text) {
    size_t devices = 0;
    for (size_t at = text.find("maxGridSize"); at != std::string::npos;
         at = text.find("maxGridSize", at + 1))
      ++devices;
    return devices;
  };
  EXPECT_EQ(count(cudnn_devices(traced, {}, tables())), 1u);
  EXPECT_EQ(count(cudnn_devices(traced, {named("RTX 3090", false)}, tables())), 1u);
  EXPECT_EQ(count(cudnn_devices(traced, {named("RTX 3090"), named("RTX 3090 Ti")}, tables())), 2u);
  const std::string devices = cudnn_devices(
      traced, {named("T4"), named("RTX 3090"), named("RTX 4090"), named("RTX 5090")}, tables());
  EXPECT_EQ(count(devices), 4u);
  EXPECT_EQ(devices.substr(0, 5), "[[90,");
  EXPECT_TRUE(contains(devices, "\"deviceVer\":705"));
  EXPECT_FALSE(contains(devices, "\"deviceVer\":1200"));
}

formats::TraceEvents group_of(const std::vector<std::pair<const char*, const char*>>& facts) {
  formats::TraceEvents out;
  for (const auto& [key, value] : facts) formats::add_fact(out, key, value);
  return out;
}

formats::TraceEvents connected(const char* communicators, const char* rings, const char* sends,
                               const char* receives, const char* world = "2") {
  return group_of({{"world", world},
                   {"node_size", world},
                   {"nccl_communicators", communicators},
                   {"nccl_rings", rings},
                   {"nccl_sends", sends},
                   {"nccl_receives", receives}});
}

// What NVML said of each process of two H100 80GB HBM3 beside PyTorch's allocator, after the steps:
// data parallel, pipelines, and tensor parallel, whose weights rank 0 scatters.
TEST(Cards, NcclOfTwoRanksIsWithin8PercentOfWhatWasMeasured) {
  struct Row {
    const char *sends, *receives;
    double mib;
  };
  for (const Row& row :
       {Row{"0", "0", 1608}, Row{"0", "0", 1592}, Row{"0", "0", 1588}, Row{"0", "0", 1604},
        Row{"0", "0", 1606}, Row{"1", "1", 2050}, Row{"1", "1", 2034}, Row{"1", "0", 1714},
        Row{"0", "1", 1970}, Row{"1", "0", 1732}, Row{"0", "1", 1988}}) {
    Card card = named("H100 SXM5 80GB");
    take_outside(card, nccl_bytes(connected("1", "1", row.sends, row.receives), card, tables()));
    EXPECT_NEAR(static_cast<double>(card.outside_allocator >> 20) / row.mib, 1, 0.08) << row.mib;
  }
}

// What each act added on two H200, where the kernels take 98 MiB less than on two H100.
TEST(Cards, EachCommunicatorAndItsConnectionsAddWhatWasMeasured) {
  struct Row {
    const char *communicators, *rings, *sends, *receives;
    double mib;
    const char* act;
  };
  for (const Row& row : {Row{"1", "1", "0", "0", 840, "all_reduce"},
                         Row{"1", "0", "1", "1", 998, "batch_isend_irecv"},
                         Row{"1", "1", "1", "1", 1286, "the same, then all_reduce"},
                         Row{"2", "1", "1", "1", 1484, "all_reduce, then send and recv"},
                         Row{"2", "2", "1", "1", 1772, "device_id, sends, a further group"},
                         Row{"2", "1", "2", "2", 1868, "all_reduce, send, all_to_all_single"}}) {
    const uint64_t mib = nccl_bytes(connected(row.communicators, row.rings, row.sends,
                                              row.receives),
                                    named("H200 SXM"), tables()) >>
                         20;
    EXPECT_NEAR(static_cast<double>(mib) - 98, row.mib, 6) << row.act;
  }
}

TEST(Cards, NcclGrowsWithTheRanksOfANodeAndWithNodes) {
  const auto mib = [](const char* card, const char* world, const char* node,
                      const char* peers = "0") {
    formats::TraceEvents events = connected("1", "1", peers, peers, world);
    formats::add_fact(events, "node_size", node);
    return nccl_bytes(events, named(card), tables()) >> 20;
  };
  EXPECT_EQ(mib("H100 SXM5 80GB", "1", "1"), 0u);
  EXPECT_EQ(mib("H100 SXM5 80GB", "2", "2"), 938u);
  EXPECT_EQ(mib("A100 SXM4 80GB", "8", "8"), 1187u);
  EXPECT_EQ(mib("H100 SXM5 80GB", "8", "8"), 1187u + 8 * 32);
  EXPECT_EQ(mib("B200", "8", "8"), 1187u + 8 * 48);
  EXPECT_EQ(mib("H100 SXM5 80GB", "64", "8"), 1187u + 8 * 32 + 512);
  EXPECT_EQ(mib("A100 SXM4 80GB", "8", "8", "7"), 1187u + 62 + 7 * 446);
  EXPECT_EQ(mib("H100 SXM5 80GB", "18446744073709551615", "18446744073709551615"),
            1187u + 72 * 32 + 512);
}

}  // namespace cards_test
}  // namespace cufit::fit
