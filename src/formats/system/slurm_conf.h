// SPDX-License-Identifier: Apache-2.0
// slurm.conf (slurm.conf(5)): how many GPUs and shards a node has. `NodeName=gpu[001-128] Gres=gpu:h100:8,shard:64 ...`; a line
// that ends in a backslash goes on; `#` begins a comment, `\#` is none; keys in any case; `Include FILE`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

struct SlurmNode {
  uint64_t gpus = 0, shards = 0;  // 0 = not told
};
// Of the line that names `node` (SLURMD_NODENAME); DEFAULT counts for what it does not say.
SlurmNode parse_slurm_node(std::string_view text, std::string_view node);

// A text cut at its `Include` lines, which whoever reads files puts in between.
struct SlurmPiece {
  std::string_view text;
  std::string include;  // file that follows it, as written; empty = none
};
std::vector<SlurmPiece> slurm_pieces(std::string_view text);

// "gpu[001-003,7],rack[1-2]n[01-16],login": is `node` one of them?
bool is_in_hostlist(std::string_view list, std::string_view node);

}  // namespace cufit::formats
