// SPDX-License-Identifier: Apache-2.0
// `scontrol show node -d -o`: one node a line, "KEY=VALUE" with blanks between; and the lines of
// `scontrol show partition -o` where they stand in the same text.
//
//   NodeName=gpu001 ... Gres=gpu:h200:8(S:0-1),shard:64 ... GresUsed=gpu:h200:2(IDX:0-1),shard:0 ...
//   PartitionName=long AllowGroups=ALL ... Default=NO ... State=UP ...
//
// GresUsed stands there with -d alone (Slurm 22.05 to 24.05). Its shards are "(0/8,3/8)", taken and
// there of each GPU, or "(IDX:1)": GPUs of which some are taken, nobody says how many. Reason, Comment
// and Extra hold what people wrote, blanks included: a key is believed once, where it stands first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct SlurmGpuType {
  std::string type;               // "h200"; empty: the GPUs have none
  uint64_t count = 0, taken = 0;  // taken: by jobs
};

struct SlurmShards {
  uint64_t taken = 0, there = 0;  // there = 0: not known, and some are taken
};

struct SlurmNodeGres {
  std::string name;
  std::vector<SlurmGpuType> gpus;
  uint64_t shards = 0;
  uint64_t gpus_taken = 0, shards_taken = 0;  // by jobs
  std::map<uint32_t, SlurmShards> shards_of;  // by the GPU's number, of those with shards taken
  std::vector<std::string> partitions;
  std::string state;  // "IDLE", "MIXED+DRAIN"; empty: it does not stand there
  uint64_t gpu_count() const;
  bool takes_jobs() const;
};

struct SlurmPartition {
  std::string name;
  bool is_default = false, is_up = true;
};

// Nodes in the order of the text, each name once; types that are no plain word are left out. At most
// 65,536 nodes and 64 types of one.
std::vector<SlurmNodeGres> parse_slurm_nodes(std::string_view text);
// At most 4,096, whose names are plain words.
std::vector<SlurmPartition> parse_slurm_partitions(std::string_view text);

}  // namespace cufit::formats
