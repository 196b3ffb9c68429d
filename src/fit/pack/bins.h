// SPDX-License-Identifier: Apache-2.0
// Jobs and GPUs as whole numbers, for the search. All sizes in MiB: quotas are set in whole ones, so
// nothing is lost, and rounding up is done before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cufit::pack {

inline constexpr uint32_t k_never = UINT32_MAX;  // the job cannot run on that kind of GPU
inline constexpr uint32_t k_no_bin = UINT32_MAX;

// A size of MIG instances. All that are as large (1g.20gb, 2g.20gb) are one: the search takes that
// which fits in most places.
struct SlotType {
  uint32_t mib = 0;              // that a job may use
  uint32_t units = 0;            // of the GPU's memory
  std::vector<uint32_t> starts;  // units at which it may begin, ascending
  uint32_t most = 0;             // at once
};

// GPUs that are alike in all that counts here.
struct BinKind {
  uint32_t mib = 0;             // that jobs may use together
  uint32_t units = 0;           // of a GPU that is divided; else 0
  std::vector<SlotType> slots;  // the smallest first; empty: jobs share the GPU
  bool divided() const { return units != 0; }
};

struct Item {
  std::vector<uint32_t> mib;  // on each kind, context and libraries included; k_never
};

struct Problem {
  std::vector<BinKind> kinds;
  std::vector<uint32_t> bins;  // the kind of each GPU
  std::vector<Item> items;
};

struct Assignment {
  std::vector<uint32_t> bin_of;  // each item's; k_no_bin: not placed
  uint32_t placed = 0, used = 0;
  uint32_t headroom = 0;  // the least that a GPU with jobs has left, MiB
  // What no assignment can do better than. `placed == most_placed`, then `used == fewest_used` or
  // `headroom == most_headroom`, is a proof.
  uint32_t most_placed = 0, fewest_used = 0, most_headroom = 0;
  uint64_t nodes = 0;  // of the search
};

// The smallest slot that holds the item; slots.size(): none.
size_t slot_of(const BinKind& kind, uint32_t mib);

// `why` an answer is not exact is in the bounds: placed < most_placed and so on. At most
// `node_limit` steps, some microseconds each.
// The most jobs, and of such assignments one on the fewest GPUs, of these the smallest.
Assignment fewest_bins(const Problem& problem, uint64_t node_limit);
// The most jobs, and of such assignments one whose fullest GPU has most left. Of GPUs that are not
// divided.
Assignment most_headroom(const Problem& problem, uint64_t node_limit);

}  // namespace cufit::pack
