// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/vram_size.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace vram_size_test {

constexpr uint64_t k_gib = uint64_t{1} << 30, k_mib = uint64_t{1} << 20, k_none = UINT64_MAX;

std::string problem_of(std::string_view text) {
  VramRequest request;
  const auto found = parse_vram(text, request);
  return found ? found->id : "";
}

VramRequest parsed(std::string_view text) {
  VramRequest request;
  EXPECT_FALSE(parse_vram(text, request)) << text;
  return request;
}

QuotaCard card(uint64_t total, uint64_t context = 500 * k_mib) {
  QuotaCard out;
  out.name = "Card", out.uuid = "GPU-a";
  out.total_bytes = total, out.context_bytes = context, out.least_bytes = 64 * k_mib;
  return out;
}

std::vector<uint64_t> limits_of(std::string_view text, const std::vector<QuotaCard>& cards,
                                const SlurmShards& slurm = {}) {
  std::vector<uint64_t> out;
  const auto found = vram_limits(parsed(text), cards, slurm, out);
  EXPECT_FALSE(found) << text << ": " << (found ? found->id : "");
  return out;
}

std::string refused(std::string_view text, const std::vector<QuotaCard>& cards,
                    const SlurmShards& slurm = {}) {
  std::vector<uint64_t> out;
  const auto found = vram_limits(parsed(text), cards, slurm, out);
  return found ? found->id : "";
}

TEST(VramSize, WhatIsASize) {
  EXPECT_EQ(parsed("10G").all.bytes, 10 * k_gib);
  EXPECT_EQ(parsed(" 20992MiB ").all.bytes, 20992 * k_mib);
  EXPECT_EQ(parsed("1.5").all.bytes, k_gib * 3 / 2);
  EXPECT_DOUBLE_EQ(parsed("50%").all.fraction, 0.5);
  EXPECT_DOUBLE_EQ(parsed("12.5 %").all.fraction, 0.125);
  EXPECT_DOUBLE_EQ(parsed("0.001%").all.fraction, 0.00001);
  EXPECT_DOUBLE_EQ(parsed("100%").all.fraction, 1);
  EXPECT_EQ(parsed("shards").form, VramRequest::Form::shards);
  EXPECT_EQ(parsed("shards/8").shards_per_gpu, 8u);
}

TEST(VramSize, WhatIsNone) {
  for (const char* text : {"",
                           " ",
                           "0",
                           "G",
                           "-1G",
                           "10T",
                           "10 K",
                           "1e3G",
                           "0%",
                           "101%",
                           "100.001%",
                           "%",
                           "-5%",
                           ".5%",
                           "5.%",
                           "1.2345%",
                           "1.2.3%",
                           "nan",
                           "inf",
                           "0x10G",
                           "shards/",
                           "shards/0",
                           "shards/-1",
                           "shards/1000001",
                           "shard",
                           ":",
                           "0:",
                           ":1G",
                           "0:1G,",
                           ",0:1G",
                           "0:1G,,1:1G",
                           "a:1G",
                           "-1:1G",
                           "1024:1G",
                           "0:0",
                           "0:1G,1G",
                           "0:shards",
                           "99999999999999999999G",
                           "4294967296:1G"})
    EXPECT_EQ(problem_of(text), "size") << text;
  EXPECT_EQ(problem_of("0:1G,1:2G,0:3G"), "twice");
  EXPECT_EQ(problem_of(std::string(100000, ',')), "size");
}

TEST(VramSize, OneSizeIsForEveryGpu) {
  EXPECT_EQ(limits_of("10G", {card(80 * k_gib), card(16 * k_gib)}),
            (std::vector<uint64_t>{10 * k_gib, 10 * k_gib}));
  EXPECT_EQ(limits_of("50%", {card(80 * k_gib), card(16 * k_gib)}),
            (std::vector<uint64_t>{40 * k_gib, 8 * k_gib}));
  EXPECT_EQ(limits_of("100%", {card(80 * k_gib + 12345)}),
            (std::vector<uint64_t>{80 * k_gib + 12345}));
}

TEST(VramSize, NumbersNameTheirGpuAndNoOther) {
  EXPECT_EQ(limits_of("1:4G,0:50%", {card(80 * k_gib), card(16 * k_gib), card(16 * k_gib)}),
            (std::vector<uint64_t>{40 * k_gib, 4 * k_gib, k_none}));
  EXPECT_EQ(refused("2:4G", {card(80 * k_gib), card(16 * k_gib)}), "number");
}

TEST(VramSize, WithoutACardOnlyAPlainSizeMeansSomething) {
  EXPECT_TRUE(limits_of("10G", {}).empty());
  EXPECT_EQ(refused("50%", {}), "no_gpu");
  EXPECT_EQ(refused("0:10G", {}), "no_gpu");
  EXPECT_EQ(refused("shards/8", {}, {"2", 0, 0}), "no_gpu");
}

TEST(VramSize, WhatACardDoesNotHaveIsRefused) {
  EXPECT_EQ(refused("5G", {card(4 * k_gib)}), "too_large");
  EXPECT_EQ(refused("4G", {card(4 * k_gib)}), "");
  // Which total it has is not known: any size may be right, a share of it is nothing.
  EXPECT_EQ(refused("5G", {card(0)}), "");
  EXPECT_EQ(refused("50%", {card(0)}), "total");
}

// What a PyTorch process usually takes is a word of warning; what no context takes is a refusal.
TEST(VramSize, OnlyWhatNoContextFitsIntoIsRefused) {
  EXPECT_EQ(refused("63MiB", {card(4 * k_gib)}), "too_small");
  EXPECT_EQ(refused("64MiB", {card(4 * k_gib)}), "");
  EXPECT_EQ(refused("0.001%", {card(k_gib, 0)}), "too_small");
  const std::vector<QuotaCard> cards = {card(4 * k_gib), card(4 * k_gib), card(4 * k_gib)};
  EXPECT_EQ(tight_cards(cards, {500 * k_mib, 501 * k_mib, k_none}), (std::vector<size_t>{0}));
}

TEST(VramSize, AContextIsNeverChargedMoreThanTheLimit) {
  const QuotaCard one = card(4 * k_gib);
  EXPECT_EQ(context_charge(one, 600 * k_mib), 500 * k_mib);
  EXPECT_EQ(context_charge(one, k_none), 500 * k_mib);
  for (uint64_t mib = 64; mib < 1000; mib += 7)
    EXPECT_LE(context_charge(one, mib * k_mib), mib * k_mib) << mib;
}

TEST(VramSize, ShardsAreAPartOfTheCardsThatTheJobSees) {
  const std::vector<QuotaCard> one = {card(80 * k_gib)};
  EXPECT_EQ(limits_of("shards", one, {"2", 64, 8}), (std::vector<uint64_t>{20 * k_gib}));
  EXPECT_EQ(limits_of("shards/16", one, {"2", 64, 8}), (std::vector<uint64_t>{10 * k_gib}));
  // Shards of two GPUs are spread over both.
  EXPECT_EQ(limits_of("shards", {card(80 * k_gib), card(80 * k_gib)}, {"8", 64, 8}),
            (std::vector<uint64_t>{40 * k_gib, 40 * k_gib}));
  // More than there are is a mistake, not the whole card.
  EXPECT_EQ(refused("shards", one, {"99", 64, 8}), "shards_many");
  EXPECT_EQ(refused("shards", one, {"", 64, 8}), "no_shards");
  for (const char* on_node : {"0", "-1", "two", "2,2"})
    EXPECT_EQ(refused("shards", one, {on_node, 64, 8}), "shards_words") << on_node;
  EXPECT_EQ(refused("shards", one, {"2", 0, 8}), "shards_total");
  EXPECT_EQ(refused("shards", one, {"2", 64, 0}), "shards_total");
}

// What torch may take by the fraction and a context are never more than the limit.
TEST(VramSize, TorchsFractionStaysBelowTheLimit) {
  for (const uint64_t total : {16 * k_gib, 80 * k_gib, 141 * k_gib})
    for (uint64_t limit = 501 * k_mib; limit <= total; limit += 977 * k_mib)
      for (const bool guarded : {true, false}) {
        const std::vector<QuotaCard> cards = {card(total)};
        const double fraction = torch_fraction(cards, {limit}, guarded);
        const double shown = static_cast<double>(guarded ? limit : total);
        EXPECT_GT(fraction, 0);
        EXPECT_LE(fraction, 1);
        EXPECT_NEAR(fraction * shown + 500.0 * k_mib, static_cast<double>(limit), 1024);
      }
}

TEST(VramSize, OneFractionForSeveralGpus) {
  const std::vector<QuotaCard> cards = {card(80 * k_gib), card(80 * k_gib)};
  const double small = torch_fraction({cards[0]}, {4 * k_gib}, false);
  EXPECT_DOUBLE_EQ(torch_fraction(cards, {40 * k_gib, 4 * k_gib}, false), small);
  EXPECT_DOUBLE_EQ(torch_fraction(cards, {k_none, 4 * k_gib}, false), small);
  // Under the guard it may only be too large: the guard holds, and the other GPU is not limited by it.
  EXPECT_DOUBLE_EQ(torch_fraction(cards, {k_none, 4 * k_gib}, true), 0);
  EXPECT_DOUBLE_EQ(torch_fraction(cards, {40 * k_gib, 4 * k_gib}, true),
                   torch_fraction({cards[0]}, {40 * k_gib}, true));
  EXPECT_DOUBLE_EQ(torch_fraction(cards, {k_none, k_none}, false), 0);
  EXPECT_DOUBLE_EQ(torch_fraction({card(80 * k_gib)}, {400 * k_mib}, true), 0);
  EXPECT_DOUBLE_EQ(torch_fraction({card(0)}, {4 * k_gib}, false), 0);
  EXPECT_DOUBLE_EQ(torch_fraction({}, {}, true), 0);
}

}  // namespace vram_size_test
}  // namespace cufit::resolve
