// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/recorded_events.h"

#include <algorithm>
#include <utility>

namespace cufit::memory {

namespace {

// Index of the range that holds the address; one beyond the last where none does.
size_t range_with(const std::vector<RecordedEvents::PoolRange>& ranges, uint64_t address) {
  auto after = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](uint64_t value, const RecordedEvents::PoolRange& range) { return value < range.address; });
  if (after == ranges.begin()) return ranges.size();
  --after;
  const bool inside = address - after->address < after->size;
  return inside ? static_cast<size_t>(after - ranges.begin()) : ranges.size();
}

}  // namespace

RecordedEvents::RecordedEvents(const Snapshot& snapshot, const Trace& trace,
                               std::vector<Context> contexts, std::vector<PoolRange> pools)
    : rows_(snapshot.events.shared()),
      first_(trace.first),
      count_(trace.count),
      contexts_(std::move(contexts)) {
  if (pools.empty()) return;
  for (size_t i = 0; i < count_; ++i) {
    const RecordedEvent event = (*this)[i];
    if (event.action != Action::segment_alloc) continue;
    const size_t at = range_with(pools, event.address);
    if (at < pools.size()) pools[at].since = i;
  }
  pools_ = std::move(pools);
}

void RecordedEvents::keep_last(size_t count) {
  const size_t left_out = size() - std::min(count, size());
  if (!own_.empty()) {
    own_.erase(own_.begin(), own_.begin() + static_cast<std::ptrdiff_t>(left_out));
    return;
  }
  first_ += left_out;
  count_ -= left_out;
  for (PoolRange& range : pools_) range.since -= std::min(range.since, left_out);
}

uint32_t RecordedEvents::pool_at(uint64_t address, size_t event, uint32_t otherwise) const {
  const size_t at = range_with(pools_, address);
  return at < pools_.size() && event >= pools_[at].since ? pools_[at].pool : otherwise;
}

}  // namespace cufit::memory
