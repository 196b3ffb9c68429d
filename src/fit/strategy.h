// SPDX-License-Identifier: Apache-2.0
// How a model is dealt out over GPUs: `--strategy` of `cufit fit`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::fit {

struct Strategy {
  std::string asked;    // "zero3", "tp:2"
  std::string kind;     // what the program does: "ddp", "zero1", "fsdp", "hsdp", "tp"
  uint64_t degree = 0;  // ranks of a group: of hsdp those that share a copy, of tp a layer
  bool reshard = true;  // what was gathered for a block is dropped behind its forward pass

  bool shards() const { return kind != "ddp" && kind != "zero1"; }
  // Ranks come in groups of so many.
  uint64_t group() const { return degree == 0 ? 1 : degree; }
  // "strategy_zero3": the assumption that says what it stands for.
  std::string note() const;
};

// "ddp", "zero1", "zero2", "zero3", "fsdp", "fsdp:no-reshard", "hsdp:K", "tp:K". Error{usage} for
// others.
Result<Strategy> parse_strategy(const std::string& text);

// What is usual where none was asked for: FSDP where all is trained, else a copy for each rank.
Strategy usual_strategy(std::string_view method);

}  // namespace cufit::fit
