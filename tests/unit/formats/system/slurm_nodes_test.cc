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
