// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/placement.h"

#include <algorithm>
#include <iterator>

#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace {

using PlacementKind = PlacementStep::Kind;
using Ranges = AddressSpace::Ranges;

constexpr uint64_t k_granule = AddressSpace::k_granule;
// How many calls ahead a range that became free is measured by what went into it.
constexpr size_t k_ahead = 256;
// No device address is so high, and sums do not overflow below it.
constexpr uint64_t k_highest = uint64_t{1} << 60;

bool is_aligned(uint64_t address) { return address % k_granule == 0; }

Ranges::const_iterator containing(const Ranges& ranges, uint64_t address, uint64_t size) {
  auto at = ranges.upper_bound(address);
  if (at == ranges.begin()) return ranges.end();
  --at;
  return address + size <= at->first + at->second ? at : ranges.end();
}

bool overlaps(const Ranges& ranges, uint64_t address, uint64_t size) {
  auto at = ranges.lower_bound(address);
  if (at != ranges.end() && at->first < address + size) return true;
  if (at == ranges.begin()) return false;
  --at;
  return at->first + at->second > address;
}

// The free room around an address that no range covers.
void narrow(const Ranges& ranges, uint64_t address, uint64_t& low, uint64_t& high) {
  const auto after = ranges.upper_bound(address);
  if (after != ranges.end()) high = std::min(high, after->first);
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    low = std::max(low, before->first + before->second);
  }
}

class Inference {
 public:
  Inference(const std::vector<PlacedCall>& calls, const Ranges& initial)
      : calls_(calls), space_(top_of(calls, initial)) {
    placement_.top = space_.low();
    for (const auto& [address, size] : initial) space_.occupy(address, size);
  }

  Placement run() {
    for (next_ = 0; next_ < calls_.size(); ++next_)
      if (!follow(calls_[next_].call)) {
        placement_.steps.clear();
        break;
      }
    return std::move(placement_);
  }

 private:
  static uint64_t top_of(const std::vector<PlacedCall>& calls, const Ranges& initial) {
    if (!initial.empty()) return initial.begin()->first / k_granule * k_granule;
    for (const PlacedCall& call : calls)
      if (call.call.kind == RecordedCall::Kind::segment_alloc)
        return round_up(std::min(call.call.address + call.call.size, k_highest), k_granule);
    return Placement().top;
  }

  void add(PlacementKind kind, uint64_t address, uint64_t size) {
    placement_.steps.push_back({address, size, calls_[next_].event, kind});
    apply(placement_.steps.back(), space_);
  }

  bool follow(const RecordedCall& call) {
    if (call.kind == RecordedCall::Kind::segment_map ||
        call.kind == RecordedCall::Kind::segment_unmap)
      return true;
    if (call.address >= k_highest || call.size == 0 || call.size >= k_highest) return false;
    const uint64_t size = round_up(call.size, k_round_large);
    if (call.kind == RecordedCall::Kind::segment_free) {
      const auto known = space_.used().find(call.address);
      if (known == space_.used().end() || known->second != size) return false;
      space_.release(call.address, size);
      return true;
    }
    // Each step brings the rule nearer to the address; three suffice.
    ++placement_.placed;
    if (space_.peek(size) != call.address) ++placement_.unforeseen;
    for (int i = 0; i < 4 && space_.peek(size) != call.address; ++i) explain(call.address, size);
    return space_.place(size) == call.address;
  }

  // Rests below `address` that would have been taken first.
  void close_rests(uint64_t address, uint64_t size) {
    std::vector<std::pair<uint64_t, uint64_t>> closed;
    for (const auto& [at, bytes] : space_.rests()) {
      if (at >= address) break;
      if (bytes >= size) closed.emplace_back(at, bytes);
    }
    for (const auto& [at, bytes] : closed) add(PlacementKind::close, at, bytes);
  }

  // Gaps above `address` that would have been taken first.
  void close_gaps(uint64_t address, uint64_t granules) {
    std::vector<std::pair<uint64_t, uint64_t>> closed;
    for (auto gap = space_.gaps().upper_bound(address); gap != space_.gaps().end(); ++gap)
      if (gap->second >= granules) closed.emplace_back(gap->first, gap->second);
    for (const auto& [at, bytes] : closed) add(PlacementKind::close, at, bytes);
  }

  void explain(uint64_t address, uint64_t size) {
    const uint64_t granules = round_up(size, k_granule);
    const auto rest = containing(space_.rests(), address, size);
    if (rest != space_.rests().end()) return explain_rest(*rest, address, size);
    const auto gap = containing(space_.gaps(), address, granules);
    if (is_aligned(address) && gap != space_.gaps().end()) return explain_gap(*gap, address, size);
    if (is_aligned(address) && address + granules <= space_.low()) {
      close_rests(UINT64_MAX, size);
      close_gaps(0, granules);
      const uint64_t skipped = space_.low() - (address + granules);
      if (skipped > 0) add(PlacementKind::descend, 0, skipped);
      return;
    }
    if (overlaps(space_.rests(), address, size) || overlaps(space_.gaps(), address, size)) {
      // Free in two parts that the rule keeps apart.
      close_rests(address, size);
      add(PlacementKind::close, address, size);
      add(PlacementKind::open, address, size);
      return;
    }
    open_around(address, size);
  }

  // The driver itself took what lies before the address.
  void explain_rest(std::pair<uint64_t, uint64_t> rest, uint64_t address, uint64_t size) {
    close_rests(rest.first, size);
    const uint64_t before = address - rest.first;
    if (before == 0) return;
    const auto first = std::find_if(space_.rests().begin(), space_.rests().end(),
                                    [&](const auto& range) { return range.second >= before; });
    if (first != space_.rests().end() && first->first == rest.first) {
      add(PlacementKind::take, 0, before);
    } else {
      add(PlacementKind::close, rest.first, before);
    }
  }

  void explain_gap(std::pair<uint64_t, uint64_t> gap, uint64_t address, uint64_t size) {
    const uint64_t granules = round_up(size, k_granule);
    close_rests(UINT64_MAX, size);
    close_gaps(gap.first, granules);
    const uint64_t end = address + granules;
    const uint64_t above = gap.first + gap.second - end;
    if (above == 0) return;
    const bool is_highest = std::none_of(space_.gaps().upper_bound(gap.first), space_.gaps().end(),
                                         [&](const auto& range) { return range.second >= above; });
    if (is_highest) {
      add(PlacementKind::take_granules, 0, above);
    } else {
      add(PlacementKind::close, end, above);
    }
  }

  // A range that the rule does not know became free. What goes into it next shows how large it is
  // and from which end it is filled.
  void open_around(uint64_t address, uint64_t size) {
    uint64_t low = 0, high = k_highest;
    for (const Ranges* known : {&space_.used(), &space_.rests(), &space_.gaps()})
      narrow(*known, address, low, high);
    if (address < space_.low()) high = std::min(high, space_.low());
    const uint64_t granules = round_up(size, k_granule);
    if (is_aligned(address) && is_filled_from_above(address, granules, low, high)) {
      const uint64_t from = filled_down_to(address, low);
      close_rests(UINT64_MAX, size);
      add(PlacementKind::open_granules, from, std::min(address + granules, high) - from);
      close_gaps(address, granules);
      return;
    }
    close_rests(address, size);
    add(PlacementKind::open, address, filled_up_to(address + size, high) - address);
  }

  // The later segments up to the next release, for `visit`, until it returns false.
  template <typename Visit>
  void look_ahead(Visit visit) const {
    const size_t end = std::min(calls_.size(), next_ + 1 + k_ahead);
    for (size_t i = next_ + 1; i < end; ++i) {
      const RecordedCall& call = calls_[i].call;
      if (call.kind == RecordedCall::Kind::segment_free) return;
      if (call.kind != RecordedCall::Kind::segment_alloc || call.address >= k_highest) continue;
      if (!visit(call)) return;
    }
  }

  bool is_filled_from_above(uint64_t address, uint64_t granules, uint64_t low,
                            uint64_t high) const {
    if (address + granules > high) return false;
    bool above = true;
    look_ahead([&](const RecordedCall& call) {
      const bool inside = call.address >= low && call.address < high;
      const bool in_tail = call.address >= address && call.address < address + granules;
      const bool fits = in_tail && call.size <= address + granules - call.address;
      if (!inside || fits) return true;
      above = call.address < address && is_aligned(call.address);
      return false;
    });
    return above;
  }

  uint64_t filled_down_to(uint64_t address, uint64_t low) const {
    uint64_t from = address;
    look_ahead([&](const RecordedCall& call) {
      if (call.address >= low && call.address < from && is_aligned(call.address))
        from = call.address;
      return true;
    });
    return from;
  }

  // Up to the next known range if no segment that went elsewhere would have had room.
  uint64_t filled_up_to(uint64_t end, uint64_t high) const {
    uint64_t smallest_elsewhere = k_highest;
    look_ahead([&](const RecordedCall& call) {
      if (call.address >= end && call.address < high) {
        end = std::min(call.address + std::min(call.size, k_highest), high);
        smallest_elsewhere = k_highest;
      } else {
        smallest_elsewhere = std::min(smallest_elsewhere, call.size);
      }
      return true;
    });
    if (smallest_elsewhere == k_highest || smallest_elsewhere == 0) return end;
    const uint64_t room = round_up(smallest_elsewhere, k_round_large) - k_round_large;
    return std::min(high, end + room);
  }

  const std::vector<PlacedCall>& calls_;
  AddressSpace space_;
  Placement placement_;
  size_t next_ = 0;
};

}  // namespace

void apply(const PlacementStep& step, AddressSpace& space) {
  switch (step.kind) {
    case PlacementKind::open:
      return space.open(step.address, step.size);
    case PlacementKind::open_granules:
      return space.open_granules(step.address, step.size);
    case PlacementKind::close:
      return space.close(step.address, step.size);
    case PlacementKind::take:
      return space.take(step.size);
    case PlacementKind::take_granules:
      return space.take_granules(step.size);
    case PlacementKind::descend:
      return space.descend(step.size);
  }
}

Placement infer_placement(const std::vector<PlacedCall>& calls, const Ranges& initial) {
  return Inference(calls, initial).run();
}

}  // namespace cufit::memory
