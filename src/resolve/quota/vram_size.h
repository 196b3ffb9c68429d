// SPDX-License-Identifier: Apache-2.0
// The sizes of `cufit run --vram`, and the limit of each GPU that they mean. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cufit::resolve {

struct VramAmount {
  uint64_t bytes = 0;   // 0: a share of the card
  double fraction = 0;  // 0 < fraction <= 1
};

struct VramRequest {
  enum class Form { all, each, shards } form = Form::all;
  VramAmount all;
  std::vector<std::pair<uint32_t, VramAmount>> each;  // by the process's own numbers, rising
  uint64_t shards_per_gpu = 0;                        // "shards/8"; 0 = as Slurm's files say
};

// Message "run.vram.<id>" with its arguments.
struct VramProblem {
  std::string id;
  std::map<std::string, std::string> args;
};

// "10G", "20992MiB", "50%", "0:10G,1:50%", "shards", "shards/8". Problems: size, twice.
std::optional<VramProblem> parse_vram(std::string_view text, VramRequest& out);

struct QuotaCard {
  std::string name, uuid, pci;
  uint64_t total_bytes = 0;    // 0 = not known
  uint64_t context_bytes = 0;  // of a PyTorch process with its kernels, usually; 0 = not known
  uint64_t least_bytes = 0;    // no context takes less; a size below it holds nothing
};

// Of the environment and of Slurm's files.
struct SlurmShards {
  std::string on_node;       // SLURM_SHARDS_ON_NODE
  uint64_t node_shards = 0;  // of the node, and its GPUs; 0 = not known
  uint64_t node_gpus = 0;
};

// By the place of the card; UINT64_MAX = none.
// Problems: no_gpu, number, total, too_large, too_small, no_shards, shards_total.
std::optional<VramProblem> vram_limits(const VramRequest& request,
                                       const std::vector<QuotaCard>& cards,
                                       const SlurmShards& slurm, std::vector<uint64_t>& out);

// Cards whose limit a PyTorch process may use up before its first tensor: worth a word, no refusal.
std::vector<size_t> tight_cards(const std::vector<QuotaCard>& cards,
                                const std::vector<uint64_t>& limits);

// What the guard charges before a context is made. The usual figure, so that two processes do not both get the last room;
// the least one where the usual is more than the limit and would refuse what may fit.
uint64_t context_charge(const QuotaCard& card, uint64_t limit);

// What torch is told (per_process_memory_fraction, of the total that the program is shown); 0 = none. Under the guard the
// total is the limit, and what is left beside a context is torch's; else it is the card's, and the
// smallest share of a GPU holds: torch has one setting for all.
double torch_fraction(const std::vector<QuotaCard>& cards, const std::vector<uint64_t>& limits,
                      bool guarded);

}  // namespace cufit::resolve
