// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/initial_state.h"

#include <algorithm>
#include <map>

namespace cufit::memory {
namespace {

using InitialStateRanges = std::map<uint64_t, SegmentView>;  // by address; without blocks

InitialStateRanges::iterator range_with(InitialStateRanges& ranges, uint64_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  --after;
  const bool inside = address < after->second.address + after->second.size;
  return inside ? after : ranges.end();
}

// Not empty and without overflow, also where ranges are joined.
bool is_sound(uint64_t address, uint64_t size) {
  constexpr uint64_t k_limit = uint64_t{1} << 60;
  return size > 0 && size < k_limit && address < k_limit;
}

// Takes [address, address + size) out; what is left of the range stays.
void remove_range(InitialStateRanges& ranges, uint64_t address, uint64_t size) {
  const auto found = range_with(ranges, address);
  if (found == ranges.end()) return;
  const SegmentView whole = found->second;
  const uint64_t end = whole.address + whole.size;
  const uint64_t to = std::min(address + size, end);
  ranges.erase(found);
  SegmentView part = whole;
  part.size = address - whole.address;
  if (part.size > 0) ranges[part.address] = part;
  part.address = to;
  part.size = end - to;
  if (part.size > 0) ranges[part.address] = part;
}

SegmentView range_of(const RecordedEvent& event, const Settings& settings) {
  SegmentView range;
  range.address = event.address;
  range.size = event.size;
  range.stream = event.stream;
  range.pool = event.pool;
  range.is_expandable = event.action == Action::segment_unmap;
  // Segments of the small pool have 2 MiB and no other has; pages of the large one are multiples
  // of large_segment_size.
  range.is_small = range.is_expandable ? event.size % settings.large_segment_size != 0
                                       : event.size == k_small_buffer;
  return range;
}

// Adjoining ranges of one expandable segment are one.
void add_range(InitialStateRanges& ranges, SegmentView range) {
  if (range.is_expandable) {
    const auto joins = [&](const SegmentView& other) {
      return other.is_expandable && other.stream == range.stream && other.pool == range.pool;
    };
    auto before = range.address == 0 ? ranges.end() : range_with(ranges, range.address - 1);
    if (before != ranges.end() && joins(before->second)) {
      range.is_small = before->second.is_small;
      range.size += range.address - before->second.address;
      range.address = before->second.address;
      ranges.erase(before);
    }
    auto after = ranges.find(range.address + range.size);
    if (after != ranges.end() && joins(after->second)) {
      range.is_small = after->second.is_small;
      range.size += after->second.size;
      ranges.erase(after);
    }
  }
  ranges[range.address] = std::move(range);
}

InitialStateRanges ranges_at_start(const Recording& recording,
                                   const std::vector<uint32_t>& call_events) {
  InitialStateRanges ranges;
  for (const SegmentView& segment : recording.final_segments) {
    if (!is_sound(segment.address, segment.size)) continue;
    SegmentView range = segment;
    range.blocks.clear();
    ranges[range.address] = std::move(range);
  }
  for (size_t i = call_events.size(); i-- > 0;) {
    const RecordedEvent event = recording.events[call_events[i]];
    if (!is_sound(event.address, event.size)) continue;
    switch (event.action) {
      case Action::segment_alloc:
      case Action::segment_map:
        remove_range(ranges, event.address, event.size);
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        add_range(ranges, range_of(event, recording.settings));
        break;
      default:
        break;
    }
  }
  return ranges;
}

void add_free(SegmentView& segment, uint64_t from, uint64_t to) {
  if (to > from) segment.blocks.push_back({from, to - from, 0, BlockUse::inactive, {}});
}

void add_blocks(SegmentView& segment, const std::vector<InitialBlock>& live, size_t first,
                size_t last, const Settings& settings) {
  uint64_t at = segment.address;
  const uint64_t end = segment.address + segment.size;
  for (size_t i = first; i < last; ++i) {
    const InitialBlock& block = live[i];
    if (block.address < at) continue;  // overlaps: a trace that contradicts itself
    const uint64_t next = i + 1 < last ? live[i + 1].address : end;
    uint64_t size = block.size != 0
                        ? block.size
                        : round_size(block.requested_size, settings.roundup_power2_divisions);
    size = std::min(size, next - block.address);
    if (size == 0) continue;  // two at one address
    // The large pool never leaves a free rest of 1 MiB or less behind, so the block has it.
    const bool whole_pages = segment.is_expandable || segment.is_small;
    if (block.size == 0 && !whole_pages && next - block.address - size <= k_small_size)
      size = next - block.address;
    add_free(segment, at, block.address);
    segment.blocks.push_back({block.address, size, block.requested_size, BlockUse::allocated, {}});
    at = block.address + size;
  }
  add_free(segment, at, end);
}

// A block of the large pool may hold up to 1 MiB more than was asked for. The next block that is
// cut from the free one behind it, while it lives, shows where it ends.
void bound_by_later_allocs(const Recording& recording, InitialStateRanges& ranges,
                           std::vector<InitialBlock>& live) {
  const auto after = [](uint64_t value, const InitialBlock& block) {
    return value < block.address;
  };
  uint32_t last = 0;  // at which one of them is freed; most are within the first step
  for (const InitialBlock& block : live)
    if (block.size == 0) last = std::max(last, block.freed_at);
  const size_t behind = std::min<size_t>(size_t{last} + 1, recording.events.size());
  for (uint32_t i = 0; i < behind; ++i) {
    if (recording.events.action(i) != Action::alloc) continue;
    const RecordedEvent event = recording.events[i];
    auto block = std::upper_bound(live.begin(), live.end(), event.address, after);
    if (block == live.begin()) continue;
    --block;
    if (block->size != 0 || block->freed_at < i) continue;
    const uint64_t size =
        round_size(block->requested_size, recording.settings.roundup_power2_divisions);
    const uint64_t end = block->address + size;
    if (event.address < end || event.address - end > k_small_size) continue;
    const auto range = range_with(ranges, block->address);
    if (range == ranges.end() || event.address >= range->first + range->second.size) continue;
    block->size = event.address - block->address;
  }
}

}  // namespace

std::vector<SegmentView> initial_segments(const Recording& recording,
                                          const std::vector<uint32_t>& call_events,
                                          std::vector<InitialBlock> live) {
  std::sort(live.begin(), live.end(),
            [](const InitialBlock& a, const InitialBlock& b) { return a.address < b.address; });
  InitialStateRanges ranges = ranges_at_start(recording, call_events);
  if (!live.empty()) bound_by_later_allocs(recording, ranges, live);
  std::vector<SegmentView> segments;
  for (auto& [address, range] : ranges) {
    const auto before = [](const InitialBlock& block, uint64_t value) {
      return block.address < value;
    };
    const auto first = std::lower_bound(live.begin(), live.end(), address, before);
    const auto last = std::lower_bound(first, live.end(), address + range.size, before);
    segments.push_back(range);
    add_blocks(segments.back(), live, static_cast<size_t>(first - live.begin()),
               static_cast<size_t>(last - live.begin()), recording.settings);
  }
  return segments;
}

}  // namespace cufit::memory
