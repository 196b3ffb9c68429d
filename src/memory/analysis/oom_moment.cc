// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/oom_moment.h"

#include <algorithm>

#include "memory/allocator/rounding.h"

namespace cufit::analysis {
namespace {

struct Piece {
  uint64_t begin, end;
};

std::vector<const SegmentRange*> held_at(std::span<const SegmentRange> segments, uint32_t event) {
  std::vector<const SegmentRange*> out;
  for (const SegmentRange& range : segments)
    if ((range.from == k_before || range.from <= event) && range.to > event) out.push_back(&range);
  std::sort(out.begin(), out.end(),
            [](const SegmentRange* a, const SegmentRange* b) { return a->address < b->address; });
  return out;
}

// Pages of one expandable segment lie side by side and serve one block together.
bool continues(const SegmentRange& before, const SegmentRange& range) {
  return before.is_expandable && range.is_expandable && before.stream == range.stream &&
         before.pool == range.pool && before.address + before.size == range.address;
}

void count_bytes(FreeSpace& space, uint64_t size) {
  if (size == 0) return;
  space.bytes += size;
  space.largest = std::max(space.largest, size);
  ++space.pieces;
}

class Counting {
 public:
  Counting(OomMoment& out, const memory::RecordedEvent& request)
      : out_(out), request_(request), is_small_(memory::is_small_size(request.size)) {}

  // `blocks`: what is taken, by address.
  void run(const std::vector<const SegmentRange*>& ranges, const std::vector<Piece>& blocks) {
    auto block = blocks.begin();
    for (size_t i = 0; i < ranges.size();) {
      uint64_t at = ranges[i]->address;
      const SegmentRange& first = *ranges[i];
      uint64_t end = first.address + first.size;
      for (++i; i < ranges.size() && continues(*ranges[i - 1], *ranges[i]); ++i)
        end = ranges[i]->address + ranges[i]->size;
      out_.reserved += end - first.address;
      while (block != blocks.end() && block->end <= at) ++block;
      for (; block != blocks.end() && block->begin < end; ++block) {
        if (block->begin > at) gap(first, block->begin - at);
        at = std::max(at, block->end);
      }
      if (at < end) gap(first, end - at);
    }
  }

 private:
  void gap(const SegmentRange& segment, uint64_t size) {
    count_bytes(out_.free, size);
    if (segment.stream == request_.stream && segment.pool == request_.pool &&
        segment.is_small == is_small_)
      count_bytes(out_.usable, size);
  }

  OomMoment& out_;
  const memory::RecordedEvent& request_;
  bool is_small_;
};

}  // namespace

OomMoment oom_moment_at(const memory::Recording& recording, uint32_t event,
                        const Lifetimes& lifetimes, std::span<const SegmentRange> segments) {
  OomMoment out;
  out.event = event;
  const memory::RecordedEvent request = recording.events[event];
  out.rounded_bytes = request.size;
  out.segment_bytes =
      memory::get_allocation_size(request.size, recording.settings.large_segment_size);
  std::vector<Piece> blocks;
  for (const Lifetime& row : lifetimes.rows) {
    const bool allocated = is_allocated(row, event);
    if (!allocated && !is_pending(row, event)) continue;
    (allocated ? out.allocated : out.pending) += row.block_bytes;
    blocks.push_back({row.address, row.address + row.block_bytes});
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  Counting(out, request).run(held_at(segments, event), blocks);
  return out;
}

std::vector<OomMoment> oom_moments(const memory::Snapshot& snapshot, uint32_t device,
                                   const memory::Recording& recording, const Lifetimes& lifetimes,
                                   std::span<const SegmentRange> segments, size_t limit) {
  std::vector<OomMoment> out;
  const size_t first = snapshot.traces[device].first;
  for (uint32_t e = 0; e < recording.events.size() && out.size() < limit; ++e) {
    if (recording.events.action(e) != memory::Action::oom) continue;
    out.push_back(oom_moment_at(recording, e, lifetimes, segments));
    const uint64_t device_free = snapshot.events[first + e].address;  // oom: not an address
    if (device_free != memory::k_absent) out.back().device_free = device_free;
  }
  return out;
}

}  // namespace cufit::analysis
