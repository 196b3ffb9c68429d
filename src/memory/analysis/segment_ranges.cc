// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/segment_ranges.h"

#include <algorithm>
#include <map>

#include "memory/allocator/rounding.h"

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::Program;
using memory::RecordedEvent;
using memory::Recording;
using memory::SegmentAction;
using memory::SegmentEvent;
using memory::SegmentView;

class Ranges {
 public:
  Ranges(const Recording& recording, const Program& program)
      : recording_(recording), call_events_(program.call_events) {
    for (const SegmentView& segment : program.initial) {
      SegmentRange range;
      range.address = segment.address;
      range.size = segment.size;
      range.stream = segment.stream;
      range.pool = segment.pool;
      range.is_small = segment.is_small;
      range.is_expandable = segment.is_expandable;
      add(range);
    }
  }

  std::vector<SegmentRange> build() {
    for (const uint32_t e : call_events_) {
      const RecordedEvent event = recording_.events[e];
      if (event.action == Action::segment_alloc) add(range_of(event, e, false));
      if (event.action == Action::segment_map) add(range_of(event, e, true));
      if (event.action == Action::segment_free || event.action == Action::segment_unmap)
        remove(event, e);
    }
    return std::move(out_);
  }

 private:
  SegmentRange range_of(const RecordedEvent& event, uint32_t at, bool is_expandable) const {
    SegmentRange range;
    range.address = event.address;
    range.size = event.size;
    range.stream = event.stream;
    range.from = at;
    range.pool = event.pool;
    range.is_expandable = is_expandable;
    // As in memory/replay/initial_state.cc: pages of the large pool are multiples of
    // large_segment_size, segments of the small one have 2 MiB and no other has.
    range.is_small = is_expandable ? event.size % recording_.settings.large_segment_size != 0
                                   : event.size == memory::k_small_buffer;
    return range;
  }

  // Address spaces end far below: sums of such numbers stay right.
  static bool is_sound(uint64_t address, uint64_t size) {
    constexpr uint64_t k_limit = uint64_t{1} << 60;
    return size > 0 && size < k_limit && address < k_limit;
  }

  void add(const SegmentRange& range) {
    if (!is_sound(range.address, range.size)) return;
    live_[range.address] = static_cast<uint32_t>(out_.size());
    out_.push_back(range);
  }

  // Ends what lies in the event's range; what sticks out of it goes on.
  void remove(const RecordedEvent& event, uint32_t at) {
    if (!is_sound(event.address, event.size)) return;
    const uint64_t end = event.address + event.size;
    auto next = live_.upper_bound(event.address);
    if (next != live_.begin()) --next;
    std::vector<SegmentRange> rests;
    while (next != live_.end() && next->first < end) {
      SegmentRange& range = out_[next->second];
      const uint64_t range_end = range.address + range.size;
      if (range_end <= event.address) {
        ++next;
        continue;
      }
      range.to = at;
      SegmentRange rest = range;
      rest.from = at;
      rest.to = k_never;
      if (range.address < event.address) {
        rest.size = event.address - range.address;
        rests.push_back(rest);
      }
      if (range_end > end) {
        rest.address = end;
        rest.size = range_end - end;
        rests.push_back(rest);
      }
      next = live_.erase(next);
    }
    for (const SegmentRange& rest : rests) add(rest);
  }

  const Recording& recording_;
  const std::vector<uint32_t>& call_events_;
  std::vector<SegmentRange> out_;
  std::map<uint64_t, uint32_t> live_;  // by address
};

class Reserved {
 public:
  explicit Reserved(const Program& program) {
    for (const SegmentView& segment : program.initial) now_ += segment.size;
    out_.events.push_back(0);
    out_.bytes.push_back(now_);
  }
  // Of several calls that one request makes, only the outcome is a moment.
  void change(uint32_t event, uint64_t size, bool more) {
    now_ = more ? now_ + size : now_ - std::min(size, now_);
    if (out_.events.back() == event) {
      out_.bytes.back() = now_;
      return;
    }
    out_.events.push_back(event);
    out_.bytes.push_back(now_);
  }
  StepSeries take() { return std::move(out_); }

 private:
  StepSeries out_;
  uint64_t now_ = 0;
};

}  // namespace

std::vector<SegmentRange> segment_ranges(const Recording& recording, const Program& program) {
  return Ranges(recording, program).build();
}

StepSeries reserved_bytes(const Program& program) {
  Reserved reserved(program);
  for (size_t i = 0; i < program.segment_calls.size(); ++i) {
    const memory::RecordedCall& call = program.segment_calls[i];
    using Kind = memory::RecordedCall::Kind;
    const bool more = call.kind == Kind::segment_alloc || call.kind == Kind::segment_map;
    reserved.change(program.call_events[i], call.size, more);
  }
  return reserved.take();
}

StepSeries reserved_bytes(std::span<const SegmentEvent> log, const Program& program) {
  Reserved reserved(program);
  for (const SegmentEvent& call : log) {
    const bool more =
        call.action == SegmentAction::segment_alloc || call.action == SegmentAction::segment_map;
    reserved.change(static_cast<uint32_t>(call.at), call.size, more);
  }
  return reserved.take();
}

}  // namespace cufit::analysis
