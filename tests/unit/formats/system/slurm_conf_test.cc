// SPDX-License-Identifier: Apache-2.0
#include "formats/system/slurm_conf.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace slurm_conf_test {

using Counts = std::pair<uint64_t, uint64_t>;  // GPUs, shards
Counts counts(std::string_view text, std::string_view node = "gpu007") {
  const SlurmNode found = parse_slurm_node(text, node);
  return {found.gpus, found.shards};
}

TEST(SlurmConf, GresOfANode) {
  const Counts both{8, 64};
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:8,shard:64"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:h100:8,shard:64 CPUs=64"), both);
  EXPECT_EQ(counts("NodeName=gpu007 CPUs=64 Gres=gpu:h100:8(S:0-1),shard:h100:64"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:h100:4(S:0,1),gpu:l4:4,shard:64"), both);
  EXPECT_EQ(counts("NODENAME=gpu007 gres=GPU:8,Shard:64"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Gres=\"gpu:8,shard:64\""), both);
  EXPECT_EQ(counts("\tNodeName=gpu007\tGres=gpu:8,shard:64\r\n"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu"), (Counts{1, 0}));
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:8,shard:1K"), (Counts{8, 1024}));
  EXPECT_EQ(counts("NodeName=gpu007 Gres=craynetwork:4,shardlike:9"), (Counts{0, 0}));
  EXPECT_EQ(counts("NodeName=gpu008 Gres=gpu:8,shard:64"), (Counts{0, 0}));
}

TEST(SlurmConf, LinesThatGoOnAndComments) {
  const Counts both{8, 64};
  EXPECT_EQ(counts("NodeName=gpu007 \\\n  Gres=gpu:8,shard:64\n"), both);
  EXPECT_EQ(counts("NodeName=gpu007 \\  \r\n  Gres=gpu:8,shard:64\n"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:8,shard:64 \\"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:8,shard:64 # Gres=gpu:1"), both);
  EXPECT_EQ(counts("# NodeName=gpu007 Gres=gpu:1\\\nNodeName=gpu007 Gres=gpu:8,shard:64"), both);
  EXPECT_EQ(counts("NodeName=gpu007 Comment=a\\#b Gres=gpu:8,shard:64"), both);
  // Two backslashes are one that was written.
  EXPECT_EQ(counts("NodeName=gpu007 Comment=a\\\\\nGres=gpu:8"), (Counts{0, 0}));
}

TEST(SlurmConf, DefaultCountsForWhatALineDoesNotSay) {
  EXPECT_EQ(counts("NodeName=DEFAULT Gres=gpu:8,shard:64\nNodeName=gpu[001-009]"), (Counts{8, 64}));
  EXPECT_EQ(counts("NodeName=default Gres=gpu:8,shard:64\nNodeName=gpu007 Gres=gpu:4"),
            (Counts{4, 64}));
  // Only for what follows it.
  EXPECT_EQ(counts("NodeName=gpu007\nNodeName=DEFAULT Gres=gpu:8"), (Counts{0, 0}));
}

TEST(SlurmConf, HostLists) {
  for (const char* list :
       {"gpu007", "gpu[001-128]", "gpu[1-6,007]", "login,gpu[005-010]", "gpu[007]", "gpu0[07,09]",
        "gpu[0-1]07", "gpu[0][0][7]", "gpu[00-01][5-9]"})
    EXPECT_TRUE(is_in_hostlist(list, "gpu007")) << list;
  for (const char* list :
       {"", "gpu", "gpu[1-128]", "gpu[008-128]", "gpu[0001-0128]", "gpu[001-006]", "gpu[001-128",
        "gpu]001-128[", "gpu[]", "gpu[7-1]", "gpu[a-z]", "gpu007x", "xgpu007", "gpu[001-128]x",
        "gpu[-]", "gpu[00-01]", "gpu[0][0][0][0][7]"})
    EXPECT_FALSE(is_in_hostlist(list, "gpu007")) << list;
  EXPECT_TRUE(is_in_hostlist("rack[1-2]n[01-16],x", "rack2n07"));
  EXPECT_FALSE(is_in_hostlist("rack[1-2]n[01-16],x", "rack3n07"));
  EXPECT_TRUE(is_in_hostlist("n[1-10]", "n10"));
  EXPECT_FALSE(is_in_hostlist("n[1-10]", "n010"));
  EXPECT_FALSE(is_in_hostlist("gpu[001-128]", ""));
}

// Names that could be read in very many ways.
TEST(SlurmConf, HostileNamesEnd) {
  std::string list = "n", node = "n" + std::string(4000, '1');
  for (int i = 0; i < 4000; ++i) list += "[1-999999]";
  EXPECT_FALSE(is_in_hostlist(list, node));
  EXPECT_FALSE(is_in_hostlist("n[0-9][0-9][0-9][0-9]x", node));
  EXPECT_EQ(counts("NodeName=gpu007 Gres=gpu:99999999999999999999,shard:18446744073709551615"),
            (Counts{1, 1'000'000}));
}

TEST(SlurmConf, IncludesAreCutOut) {
  const auto pieces =
      slurm_pieces("a=1\n# include no\ninclude  nodes.conf # more\nb=2\n Include\t/etc/x\n");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].text, "a=1\n# include no\n");
  EXPECT_EQ(pieces[0].include, "nodes.conf");
  EXPECT_EQ(pieces[1].text, "b=2\n");
  EXPECT_EQ(pieces[1].include, "/etc/x");
  EXPECT_EQ(slurm_pieces("include\nincluded x\nIncludeX=y\n").size(), 1u);
  ASSERT_EQ(slurm_pieces("").size(), 1u);
  EXPECT_EQ(slurm_pieces("")[0].include, "");
}

}  // namespace slurm_conf_test
}  // namespace cufit::formats
