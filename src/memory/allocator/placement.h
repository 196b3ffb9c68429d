// SPDX-License-Identifier: Apache-2.0
// What the driver did with its address space between the segments of a recorded run: its own
// allocations (modules, workspaces) and ranges that others gave free show in the addresses that
// segments got. Found by running the driver's rule (address_space.h) along the recording and adding
// the least that explains each address; a what-if replay does the same at the same events, so that
// a replay that asks for the recorded segments gets the recorded addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/allocator/address_space.h"
#include "memory/allocator/device_memory.h"

namespace cufit::memory {

struct PlacementStep {
  enum class Kind : uint8_t { open, open_granules, close, take, take_granules, descend };
  uint64_t address = 0;
  uint64_t size = 0;
  uint32_t event = 0;  // of Recording::events
  Kind kind = Kind::open;
};

struct Placement {
  uint64_t top = uint64_t{1} << 46;  // where the address space begins to be used, downwards
  std::vector<PlacementStep> steps;  // by event
  size_t placed = 0;  // segments, of them where the rule did not lead without a step:
  size_t unforeseen = 0;
  // Whether the rule is this driver's. Of the recordings in tests/traces none with so many segments
  // has more than half unforeseen; a layout of another kind has nearly all.
  bool follows_rule() const { return placed < 16 || 4 * unforeseen <= 3 * placed; }
};

void apply(const PlacementStep& step, AddressSpace& space);

struct PlacedCall {
  RecordedCall call;
  uint32_t event = 0;
};

// `initial`: segments before the first call, address to size. Without steps where the calls
// contradict themselves.
Placement infer_placement(const std::vector<PlacedCall>& calls,
                          const AddressSpace::Ranges& initial);

}  // namespace cufit::memory
