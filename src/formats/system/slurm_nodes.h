// SPDX-License-Identifier: Apache-2.0
// `scontrol show node -d -o`: one node a line, "KEY=VALUE" with blanks between.
//
//   NodeName=gpu001 ... Gres=gpu:h200:8(S:0-1),shard:64 ... GresUsed=gpu:h200:2(IDX:0-1),shard:0 ...
//
// GresUsed stands there with -d alone (Slurm 22.05 to 24.05). Reason, Comment and Extra hold what
// people wrote, blanks included: a key is believed once, where it stands first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct SlurmGpuType {
  std::string type;  // "h200"; empty: the GPUs have none
  uint64_t count = 0;
};

struct SlurmNodeGres {
  std::string name;
  std::vector<SlurmGpuType> gpus;
  uint64_t shards = 0;
  uint64_t gpus_taken = 0, shards_taken = 0;  // by jobs
  uint64_t gpu_count() const;
};

// Nodes in the order of the text, each name once; types that are no plain word are left out. At most
// 65,536 nodes and 64 types of one.
std::vector<SlurmNodeGres> parse_slurm_nodes(std::string_view text);

}  // namespace cufit::formats
