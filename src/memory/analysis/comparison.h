// SPDX-License-Identifier: Apache-2.0
// Two recorded runs side by side, each at its own peak of allocated bytes.
#pragma once

#include <string>
#include <vector>

#include "memory/analysis/diagnosis.h"

namespace cufit::analysis {

// A function of the program in both runs. Lines move when a program is edited, so they do not count
// for what is the same place; files count with their folder.
struct PlaceChange {
  Place in_a, in_b;  // frame is k_no_frame where the run has no such place
  bool has_a = false, has_b = false;
  uint64_t a_bytes = 0, b_bytes = 0;
  int64_t grew_bytes() const {
    return static_cast<int64_t>(b_bytes) - static_cast<int64_t>(a_bytes);
  }
};

// What changed most first, growth before loss of the same size.
std::vector<PlaceChange> place_changes(const memory::Snapshot& a_snapshot, const Observation& a,
                                       const memory::Snapshot& b_snapshot, const Observation& b);

}  // namespace cufit::analysis
