// SPDX-License-Identifier: Apache-2.0
#include "fit/link_time.h"

#include <gtest/gtest.h>

#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace link_time_test {

constexpr double k_m = 1u << 20;

// In each step `gathered` MiB are gathered so many times, and ranks sum 2 MiB for each sample.
StepProgram traced(uint64_t times, const char* world = "8", const char* node = "8") {
  const auto at = [&](uint64_t batch) {
    TraceWriter out(batch);
    const Sites s = write_sites(out);
    const uint32_t gather = out.site("all_gather_copy_out", TracePhase::forward);
    const uint32_t sum = out.site("all_reduce", TracePhase::forward);
    out.alloc(8 * k_mib, s.weight);
    for (int step = 0; step < 3; ++step) {
      out.mark(TraceMark::step_begins);
      for (uint64_t i = 0; i < times; ++i) {
        const uint32_t whole = out.alloc(32 * k_mib, gather);
        out.category(whole, StorageCategory::gathered);
        out.free(whole);
      }
      out.free(out.alloc(2 * batch * k_mib, sum));
      out.mark(TraceMark::step_ends);
    }
    for (const auto& [key, value] :
         {std::pair("world_size", world), std::pair("node_size", node),
          std::pair("data_parallel", "ddp"), std::pair("weights_bytes", "67108864"),
          std::pair("trained_bytes", "67108864")})
      out.fact(key, value);
    out.end();
    return out;
  };
  return aligned({at(2), at(4)}).value();
}

const LinkSpeed k_links{100 * k_m, 10 * k_m, 20 * k_m, 40 * k_m, true};

StepTraffic traffic(const StepProgram& program, std::vector<std::string> switches,
                    uint64_t batch = 4) {
  return step_traffic(program, batch, dealing_of(switches, program), k_links);
}

TEST(LinkTime, OneRankSendsNothing) {
  const StepProgram alone = traced(2, "1", "1");
  for (const char* name : {"fsdp", "zero1", "tp:2"})
    EXPECT_EQ(traffic(alone, {name}).bytes(4), 0) << name;
  EXPECT_EQ(traffic(alone, {}).bytes(1), 0);
}

TEST(LinkTime, CopiesSumTheirGradientsOnceAStep) {
  const StepTraffic ddp = traffic(traced(0), {});
  EXPECT_DOUBLE_EQ(ddp.last.bytes, 2 * 7.0 / 8 * 64 * k_m);
  EXPECT_DOUBLE_EQ(ddp.last.seconds, ddp.last.bytes / (100 * k_m));
  EXPECT_EQ(ddp.bytes(8), ddp.bytes(1));  // no_sync() between
  const StepTraffic zero1 = traffic(traced(0), {"zero1"});
  EXPECT_DOUBLE_EQ(zero1.bytes(1), 1.5 * ddp.bytes(1));
  EXPECT_DOUBLE_EQ(zero1.after.bytes, 7.0 / 8 * 64 * k_m);
}

TEST(LinkTime, ShardsAreGatheredTwiceAndGradientsScattered) {
  const StepTraffic twice = traffic(traced(2), {"fsdp"});
  EXPECT_DOUBLE_EQ(twice.pass.bytes, 7.0 / 8 * (2 * 32 + 64) * k_m);
  EXPECT_EQ(twice.bytes(4), 4 * twice.bytes(1));
  const StepTraffic kept = traffic(traced(1), {"fsdp:no-reshard"});
  EXPECT_DOUBLE_EQ(kept.pass.bytes, 7.0 / 8 * (32 + 64) * k_m);
}

// Within the node shards are gathered; over the network goes what a rank has of the gradients.
TEST(LinkTime, HybridShardingSendsLittleOverTheNetwork) {
  const StepProgram two_nodes = traced(2, "16", "8");
  const StepTraffic hybrid = traffic(two_nodes, {"hsdp:8"});
  const double inside = 7.0 / 8 * (2 * 32 + 64) * k_m, across = 2 * 0.5 * 64 / 8 * k_m;
  EXPECT_DOUBLE_EQ(hybrid.pass.bytes, inside + across);
  EXPECT_DOUBLE_EQ(hybrid.pass.seconds, inside / (100 * k_m) + across / (10 * k_m));
  EXPECT_LT(hybrid.pass.seconds, traffic(two_nodes, {"fsdp"}).pass.seconds);
}

TEST(LinkTime, RanksOfALayerSumActivationsThatFollowTheBatch) {
  const StepProgram program = traced(2);
  const StepTraffic split = traffic(program, {"tp:2"});
  EXPECT_DOUBLE_EQ(split.exposed.bytes, 2 * 0.5 * 8 * k_m);
  EXPECT_DOUBLE_EQ(traffic(program, {"tp:2"}, 8).exposed.bytes, 2 * split.exposed.bytes);
  EXPECT_DOUBLE_EQ(split.pass.bytes, 3.0 / 4 * (2 * 32 + 64 / 2) * k_m);
  EXPECT_EQ(dealing_of({"tp:2"}, program).batches(), 4u);
  EXPECT_EQ(dealing_of({"fsdp"}, program).batches(), 8u);
  EXPECT_EQ(traffic(program, {"tp:8"}).pass.bytes, 0);  // one group: nothing is sharded
}

TEST(LinkTime, OffloadedShardsComeFromTheProcessor) {
  const StepTraffic there = traffic(traced(2), {"fsdp"}),
                    off = traffic(traced(2), {"fsdp", "offload"});
  EXPECT_DOUBLE_EQ(off.pass.bytes - there.pass.bytes, (2 * 32 + 64) / 8 * k_m);
  EXPECT_DOUBLE_EQ(off.after.seconds, 7 * 8 * k_m / (40 * k_m));
}

TEST(LinkTime, WhatRunsBesideTheArithmeticCountsWhereItIsLonger) {
  const StepTime time{2, 1};
  StepTraffic sent;
  EXPECT_DOUBLE_EQ(step_seconds(time, sent, 4), 4 * 2 + 1);
  sent.last.seconds = 1;
  EXPECT_DOUBLE_EQ(step_seconds(time, sent, 4), 9);
  sent.last.seconds = 5;
  EXPECT_DOUBLE_EQ(step_seconds(time, sent, 4), 3 * 2 + 5 + 1);
  sent = {};
  sent.pass.seconds = 3;
  sent.exposed.seconds = 1;
  sent.after.seconds = 2;
  EXPECT_DOUBLE_EQ(step_seconds(time, sent, 2), 2 * 3 + 2 * 1 + 1 + 2);
}

TEST(LinkTime, LinksAreThoseOfTheCard) {
  const knowledge::Knowledge& tables = knowledge::Knowledge::builtin();
  const LinkSpeed h100 = link_speed("H100 SXM5 80GB", "9.0", tables);
  const LinkSpeed rtx = link_speed("GeForce RTX 4090", "8.9", tables);
  EXPECT_TRUE(h100.nvlink);
  EXPECT_FALSE(rtx.nvlink);
  EXPECT_EQ(rtx.node, rtx.host);
  EXPECT_GT(h100.node, 5 * h100.host);
  EXPECT_GT(h100.host, rtx.host);  // PCIe 5
  EXPECT_GT(link_speed("24 GiB", "", tables).node, 0);
  for (const knowledge::CardNvlinkRow& row : tables.card_nvlink)
    EXPECT_NE(tables.find_gpu(row.gpu), nullptr) << row.gpu;
}

}  // namespace link_time_test
}  // namespace cufit::fit
