// SPDX-License-Identifier: Apache-2.0
// Programs that do other things at another batch size answer for the sizes that were traced alone.
// Which size to trace next, to find the largest that fits a card.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fit/search.h"

namespace cufit::fit {

// Traces beside the usual ones that such a program is worth.
constexpr size_t k_most_traces_more = 3;

// Whether a trace at `batch` is no more work than that, going by those of other sizes, in any order.
struct TraceLength {
  uint64_t batch = 0;
  size_t events = 0;
};
bool worth_its_work(uint64_t batch, std::span<const TraceLength> traced);

// `points`: those that were traced, by batch size, each answered below `capacity` bytes. Nullopt:
// the largest that fits and the smallest that does not are near each other, or nothing can be told.
std::optional<uint64_t> next_batch(std::span<const CurvePoint> points, uint64_t capacity);

}  // namespace cufit::fit
