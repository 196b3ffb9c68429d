// SPDX-License-Identifier: Apache-2.0
#include "host/quota/slurm_node.h"

#include <gtest/gtest.h>

#include "support/fake_root.h"

namespace cufit::host {
namespace slurm_node_test {

formats::SlurmNode node(const test::FakeRoot& root, std::map<std::string, std::string> more = {}) {
  more["SLURMD_NODENAME"] = "gpu007";
  return read_slurm_node(root.host(std::move(more)));
}

constexpr const char* k_line = "NodeName=gpu[001-128] Gres=gpu:h100:8,shard:64\n";

TEST(SlurmNode, TheFirstFileThatCanBeRead) {
  test::FakeRoot root;
  EXPECT_EQ(node(root).shards, 0u);
  root.file("/run/slurm/conf/slurm.conf", k_line);
  EXPECT_EQ(node(root).shards, 64u);
  root.file("/etc/slurm/slurm.conf", "NodeName=gpu007 Gres=gpu:4,shard:16\n");
  EXPECT_EQ(node(root).shards, 16u);
  root.file("/opt/slurm.conf", "NodeName=gpu007 Gres=gpu:2,shard:8\n");
  EXPECT_EQ(node(root, {{"SLURM_CONF", "/opt/slurm.conf"}}).shards, 8u);
  EXPECT_EQ(node(root, {{"SLURM_CONF", "/not/there"}}).shards, 16u);
}

TEST(SlurmNode, WithWhatItIncludes) {
  test::FakeRoot root;
  root.file(
      "/etc/slurm/slurm.conf",
      "ClusterName=x\nNodeName=DEFAULT Gres=gpu:8\ninclude nodes.d/gpu.conf\nPartitionName=p\n");
  root.file("/etc/slurm/nodes.d/gpu.conf", "Include /etc/more.conf");
  root.file("/etc/more.conf", "NodeName=gpu007 Gres=shard:64");
  EXPECT_EQ(node(root).gpus, 8u);
  EXPECT_EQ(node(root).shards, 64u);
}

TEST(SlurmNode, IncludesWithoutEnd) {
  test::FakeRoot root;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "include slurm.conf\n";
  root.file("/etc/slurm/slurm.conf", text + k_line);
  EXPECT_EQ(node(root).shards, 64u);
}

}  // namespace slurm_node_test
}  // namespace cufit::host
