// SPDX-License-Identifier: Apache-2.0
// Jobs of several GPUs on machines with several each: all GPUs of a job are of one machine and of
// one model. Small fleets are searched through; for others jobs go one after another where they fit
// best, and sizes alone say how much better a plan could be.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/pack/bins.h"

namespace cufit::pack {

struct FleetProblem {
  const Problem& problem;                    // an item for each GPU that a job asks for
  std::vector<uint32_t> node_of;             // of each bin, rising
  std::vector<uint32_t> model_of;            // of each kind of bin: equal numbers, one model
  std::vector<std::vector<uint32_t>> items;  // of each job
};

struct FleetAssignment {
  std::vector<uint32_t> bin_of;  // each item's; k_no_bin: not placed
  uint32_t placed = 0;           // jobs
  uint32_t used = 0;             // GPUs
  uint32_t headroom = 0;         // the least that a GPU with jobs has left, MiB
  // What no assignment can do better than, as in Assignment.
  uint32_t most_placed = 0, fewest_used = 0, most_headroom = 0;
  bool spread = false;  // what was asked for
  bool optimal() const {
    return placed == most_placed && (spread ? headroom == most_headroom : used == fewest_used);
  }
};

// Up to this many the search is tried.
inline constexpr size_t k_most_searched_items = 256, k_most_searched_bins = 64;

// `spread`: of assignments with most jobs one whose fullest GPU has most left; else one on the fewest
// GPUs. At most `node_limit` steps of a search.
FleetAssignment assign_fleet(const FleetProblem& fleet, bool spread, uint64_t node_limit);

}  // namespace cufit::pack
