// SPDX-License-Identifier: Apache-2.0
// Do these jobs fit on these GPUs: a depth-first search that says yes with an assignment, no with
// certainty, or that its steps ran out.
//
// The largest job goes first, to the GPU that it leaves least of. What is left out is left out with
// proof: GPUs in equal states are one, equal jobs go up in the order of GPUs, a job that fills a GPU
// exactly may go there, a state that failed once is not tried again, and nothing goes on where the
// jobs to come are larger together than what they could use.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fit/pack/bins.h"
#include "fit/pack/slot_layout.h"

namespace cufit::pack {

enum class Fits { yes, no, unknown };

class BinSearch {
 public:
  // `items`: those that are to be placed, indices of problem.items.
  BinSearch(const Problem& problem, std::vector<uint32_t> items);

  // On the GPUs of these numbers, of each of which `reserve` MiB stay free where it has a job.
  Fits run(const std::vector<uint32_t>& bins, uint32_t reserve, uint64_t node_limit);
  // After Fits::yes: the bin of each item in the order of problem.items; k_no_bin for the others.
  const std::vector<uint32_t>& bin_of() const { return bin_of_; }
  uint64_t nodes() const { return nodes_; }

 private:
  struct State {
    uint32_t bin = 0, kind = 0;
    uint32_t left = 0;  // MiB; of a divided one all, as its slots are what counts
    SlotCounts slots = 0;
    uint32_t units = 0;  // left
  };
  struct Key {
    uint64_t a = 0, b = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key.a); }
  };

  void prepare();
  void measure();
  bool open_bins(const std::vector<uint32_t>& bins, uint32_t reserve);
  Fits place(size_t next, size_t not_before);
  bool can_take(const State& state, uint32_t item) const;
  void take(State& state, uint32_t item) const;
  bool enough_room(size_t next) const;
  Key key_of(size_t next) const;
  bool layout_fits(uint32_t kind, SlotCounts counts) const;

  uint32_t size(uint32_t item, uint32_t kind) const { return sizes_[item][kind]; }

  const Problem& problem_;
  // Of an item on a kind that is divided the size of its slot: what fills the same slot is alike.
  std::vector<std::vector<uint32_t>> sizes_;
  std::vector<uint32_t> items_;  // the largest first
  std::vector<char> same_as_before_;
  bool uniform_ = true;  // every item is as large on each kind, and no kind is divided
  // Of the items from each place on: the least that they take together, and the smallest one.
  std::vector<uint64_t> least_mib_, least_share_;
  std::vector<std::vector<uint32_t>> smallest_;  // by kind

  std::vector<State> states_;
  std::vector<uint32_t> bin_of_;
  std::unordered_set<Key, KeyHash> failed_;
  mutable std::vector<std::unordered_map<SlotCounts, bool>> layouts_;  // by kind
  uint64_t nodes_ = 0, stop_at_ = 0;
};

}  // namespace cufit::pack
