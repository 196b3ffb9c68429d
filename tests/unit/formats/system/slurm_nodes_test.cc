// SPDX-License-Identifier: Apache-2.0
#include "formats/system/slurm_nodes.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace {

// As Slurm 22.05.8 prints it, shortened.
TEST(SlurmNodes, GresOfEachNode) {
  const std::vector<SlurmNodeGres> nodes = parse_slurm_nodes(
      "NodeName=gpu001 Arch=x86_64 CPUAlloc=1 Gres=gpu:h200:8(S:0-1),shard:64 GresDrain=N/A "
      "GresUsed=gpu:h200:2(IDX:0-1),shard:h200:3(0/8,3/8) State=MIXED Comment=a Gres=gpu:b:9\n"
      "NodeName=gpu002 Gres=gpu:a100:4,gpu:h100:2\n"
      "NodeName=login Gres=(null)\n");
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].name, "gpu001");
  ASSERT_EQ(nodes[0].gpus.size(), 1u);
  EXPECT_EQ(nodes[0].gpus[0].type, "h200");
  EXPECT_EQ(nodes[0].gpus[0].count, 8u);
  EXPECT_EQ(nodes[0].shards, 64u);
  EXPECT_EQ(nodes[0].gpus_taken, 2u);
  EXPECT_EQ(nodes[0].shards_taken, 3u);
  EXPECT_EQ(nodes[1].gpu_count(), 6u);
  EXPECT_EQ(nodes[2].gpu_count(), 0u);
}

// As Slurm 22.05.8 prints what jobs have of untyped GPUs and of shards.
TEST(SlurmNodes, WhatJobsHaveOfEachTypeAndGpu) {
  const std::vector<SlurmNodeGres> nodes = parse_slurm_nodes(
      "NodeName=a Gres=gpu:a100:1,gpu:l40s:1 GresUsed=gpu:a100:1(IDX:0),gpu:l40s:0(IDX:N/A)\n"
      "NodeName=b Gres=gpu:2,shard:8 GresUsed=gpu:0,shard:(null):2(IDX:0-1,3)\n"
      "NodeName=c GresUsed=gpu:h200:1,shard:h200:3(0/8,3/8) Gres=gpu:h200:1(S:0),gpu:h200:1(S:1)\n"
      "NodeName=d Gres=gpu:2,shard:8 GresUsed=gpu:(null):1(IDX:0),shard:(null):0(0/4,0/4)\n");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0].gpus[0].taken, 1u);
  EXPECT_EQ(nodes[0].gpus[1].taken, 0u);
  EXPECT_EQ(nodes[1].gpus_taken, 0u);
  ASSERT_EQ(nodes[1].shards_of.size(), 3u);
  EXPECT_EQ(nodes[1].shards_of.at(3).there, 0u);
  ASSERT_EQ(nodes[2].gpus.size(), 1u);
  EXPECT_EQ(nodes[2].gpus[0].count, 2u);
  EXPECT_EQ(nodes[2].gpus[0].taken, 1u);
  ASSERT_EQ(nodes[2].shards_of.size(), 1u);
  EXPECT_EQ(nodes[2].shards_of.at(1).taken, 3u);
  EXPECT_EQ(nodes[3].gpus[0].taken, 1u);
  EXPECT_TRUE(nodes[3].shards_of.empty());
}

TEST(SlurmNodes, GpusWithoutAType) {
  const std::vector<SlurmNodeGres> nodes =
      parse_slurm_nodes("NodeName=a Gres=gpu:4\nNodeName=b Gres=gpu\nNodeName=a Gres=gpu:9\n");
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].gpu_count(), 4u);
  EXPECT_EQ(nodes[0].gpus[0].type, "");
  EXPECT_EQ(nodes[1].gpu_count(), 1u);
}

// A type becomes a word of a command.
TEST(SlurmNodes, ATypeIsAPlainWord) {
  const std::vector<SlurmNodeGres> nodes =
      parse_slurm_nodes("NodeName=a Gres=gpu:$(reboot):4,gpu:a100:99999999999\n");
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_TRUE(nodes[0].gpus.empty());
}

}  // namespace
}  // namespace cufit::formats
