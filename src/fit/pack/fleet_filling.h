// SPDX-License-Identifier: Apache-2.0
// GPUs of a fleet while they are filled: what each has left, and where a job of several could go.
#pragma once

#include <vector>

#include "fit/pack/fleet_assignment.h"
#include "fit/pack/slot_layout.h"

namespace cufit::pack {

class FleetFilling {
 public:
  explicit FleetFilling(const FleetProblem& fleet);

  // Bins of `node` that have room for the item now, as the nodes' bins stand.
  std::vector<uint32_t> room_for(uint32_t item, uint32_t node) const;
  void take(uint32_t item, uint32_t bin);
  void give_back(uint32_t item, uint32_t bin);

  bool is_used(uint32_t bin) const { return bins_[bin].jobs != 0; }
  uint32_t left(uint32_t bin) const { return bins_[bin].left; }
  // What would be left of it with the item, in MiB; of a divided one in parts of its memory.
  uint64_t rest(uint32_t item, uint32_t bin) const;
  bool alike(uint32_t a, uint32_t b) const;  // nothing tells the two apart for what is to come
  uint32_t nodes() const { return static_cast<uint32_t>(bins_of_.size()); }
  const std::vector<uint32_t>& bins_of(uint32_t node) const { return bins_of_[node]; }
  uint32_t model(uint32_t bin) const { return fleet_.model_of[fleet_.problem.bins[bin]]; }
  uint32_t used() const { return used_; }
  uint32_t headroom() const;  // of those used; 0: none is

 private:
  struct Bin {
    uint32_t left = 0, units = 0, jobs = 0;
    SlotCounts slots = 0;
  };
  const BinKind& kind(uint32_t bin) const { return fleet_.problem.kinds[fleet_.problem.bins[bin]]; }
  uint32_t size(uint32_t item, uint32_t bin) const {
    return fleet_.problem.items[item].mib[fleet_.problem.bins[bin]];
  }
  bool has_room(uint32_t item, uint32_t bin) const;

  const FleetProblem& fleet_;
  std::vector<Bin> bins_;
  std::vector<std::vector<uint32_t>> bins_of_;  // by node
  uint32_t used_ = 0;
};

}  // namespace cufit::pack
