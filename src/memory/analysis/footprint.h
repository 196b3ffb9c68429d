// SPDX-License-Identifier: Apache-2.0
// Allocated bytes by category and by place in the program, at one moment or over time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "memory/analysis/categories.h"

namespace cufit::analysis {

using Footprint = std::array<uint64_t, k_categories>;  // bytes by Category

// After `event`. The sum is what torch calls allocated_bytes.
Footprint footprint_at(const Lifetimes& lifetimes, const std::vector<Category>& categories,
                       uint32_t event);

// A place in the program that allocates: the innermost frame that is the program's own, or of a
// library that says more than torch's internals; and the program's own line that led there, where
// that is another one. Numbers of Stacks::frame.
constexpr uint32_t k_no_frame = UINT32_MAX;        // nothing was recorded
constexpr uint32_t k_not_python = UINT32_MAX - 1;  // recorded, and there was no Python below
struct Place {
  uint32_t frame = k_no_frame;
  uint32_t caller = k_no_frame;
};
Place place_of(const memory::Snapshot& snapshot, uint32_t stack);

struct Site {
  Place place;
  uint64_t bytes = 0;
  uint32_t blocks = 0;
  Footprint by_category{};
};

// The rows allocated after `event`, grouped by Place::frame, largest first. `chosen`, if given,
// says which rows count.
std::vector<Site> sites_at(const memory::Snapshot& snapshot, const Lifetimes& lifetimes,
                           const std::vector<Category>& categories, uint32_t event,
                           const std::vector<bool>* chosen = nullptr);

}  // namespace cufit::analysis
