// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/moment.h"

#include <algorithm>
#include <map>

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::RecordedEvent;

struct Range {
  uint64_t size = 0;
  uint32_t pool = 0;
  bool is_expandable = false;
};
using MomentRanges = std::map<uint64_t, Range>;  // by address

void remove(MomentRanges& ranges, uint64_t address, uint64_t size) {
  auto at = ranges.upper_bound(address);
  if (at != ranges.begin()) --at;
  const uint64_t end = address + size;
  while (at != ranges.end() && at->first < end) {
    const uint64_t begin = at->first;
    const Range whole = at->second;
    const uint64_t until = begin + whole.size;
    if (until <= address) {
      ++at;
      continue;
    }
    at = ranges.erase(at);
    Range part = whole;
    if (begin < address) {
      part.size = address - begin;
      ranges[begin] = part;
    }
    if (until > end) {
      part.size = until - end;
      ranges[end] = part;
    }
  }
}

MomentRanges ranges_after(const memory::VerifiedRecording& verified, uint32_t event) {
  MomentRanges ranges;
  for (const memory::SegmentView& segment : verified.program->initial)
    ranges[segment.address] = {segment.size, segment.pool, segment.is_expandable};
  for (const uint32_t i : verified.program->call_events) {
    if (i > event) break;
    const RecordedEvent e = verified.recording.events[i];
    switch (e.action) {
      case Action::segment_alloc:
      case Action::segment_map:
        ranges[e.address] = {e.size, e.pool, e.action == Action::segment_map};
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        remove(ranges, e.address, e.size);
        break;
      default:
        break;
    }
  }
  return ranges;
}

// One segment, or ranges of an expandable one that lie side by side.
class FreeCounter {
 public:
  FreeCounter(Moment& moment, uint64_t address, uint32_t pool)
      : moment_(moment), begin_(address), at_(address), pool_(pool) {}

  void live(uint64_t address, uint64_t size) {
    gap(address);
    at_ = std::max(at_, address + size);
    pinned_ = true;
  }
  void end(uint64_t address) {
    gap(address);
    (pinned_ ? moment_.inactive_split_bytes : moment_.releasable_bytes) += free_;
    if (pool_ != 0) moment_.private_reserved_bytes += address - begin_;
  }

 private:
  void gap(uint64_t until) {
    if (until <= at_) return;
    free_ += until - at_;
    moment_.largest_free_bytes = std::max(moment_.largest_free_bytes, until - at_);
    at_ = until;
  }

  Moment& moment_;
  uint64_t begin_, at_;
  uint32_t pool_;
  uint64_t free_ = 0;
  bool pinned_ = false;
};

}  // namespace

Moment moment_at(const memory::VerifiedRecording& verified, const Lifetimes& lifetimes,
                 uint32_t event) {
  Moment moment;
  moment.event = event;
  std::vector<std::pair<uint64_t, uint64_t>> live;  // address, size
  for (const Lifetime& row : lifetimes.rows) {
    const bool allocated = is_allocated(row, event);
    if (!allocated && !is_pending(row, event)) continue;
    live.emplace_back(row.address, row.block_bytes);
    (allocated ? moment.allocated_bytes : moment.pending_bytes) += row.block_bytes;
    if (allocated && row.requested_bytes != 0 && row.block_bytes > row.requested_bytes)
      moment.rounding_bytes += row.block_bytes - row.requested_bytes;
    if (allocated && row.pool != 0) moment.private_allocated_bytes += row.block_bytes;
  }
  std::sort(live.begin(), live.end());
  const MomentRanges ranges = ranges_after(verified, event);
  auto block = live.begin();
  for (auto range = ranges.begin(); range != ranges.end();) {
    FreeCounter counter(moment, range->first, range->second.pool);
    uint64_t end = range->first;
    const Range first = range->second;
    do {
      end = range->first + range->second.size;
      moment.reserved_bytes += range->second.size;
      ++range;
    } while (range != ranges.end() && first.is_expandable && range->second.is_expandable &&
             range->first == end && range->second.pool == first.pool);
    for (; block != live.end() && block->first < end; ++block)
      counter.live(block->first, block->second);
    counter.end(end);
  }
  return moment;
}

}  // namespace cufit::analysis
