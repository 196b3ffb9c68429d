// SPDX-License-Identifier: Apache-2.0
// A recording as a list of requests that name blocks by numbers instead of addresses: made once,
// run under any number of settings without a look-up. An op names a slot, which an allocation has
// while it lives and another may have later, so that a replay's table of blocks is as small as what
// lives at once. Allocations themselves are numbered in their order, those of the beginning first.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/allocator/placement.h"
#include "memory/snapshot/recording.h"

namespace cufit::memory {

enum class OpKind : uint8_t {
  malloc,
  free,            // free_requested and free_completed next to each other
  free_requested,  // waits for events of other streams
  free_completed,
  empty_cache,  // segments were given back and no request was being served
  failed,       // the recorded run was out of memory here
};

struct Op {
  uint32_t slot = 0;    // of the allocation; failed: of Program::failed_sizes
  uint32_t event = 0;   // of Recording::events
  uint16_t stream = 0;  // of Program::streams
  uint16_t pool = 0;
  OpKind kind = OpKind::malloc;
  // A malloc of at least 1 MiB whose block is freed before anything else happens.
  bool freed_at_once = false;
  // A failed request that a library did without: not the end of the run.
  bool caught = false;
  // An empty_cache that may as well have been the request after it, which could not be served.
  bool doubtful = false;
};
static_assert(sizeof(Op) == 16);

// The segment events that the recorded run made while it served one request.
struct SegmentWindow {
  uint32_t op = 0;
  uint32_t end = 0;  // of Program::segment_calls; it begins where the one before ends
};

constexpr size_t k_max_streams = 4096;
constexpr uint32_t k_max_pools = 4096;

struct Program {
  std::vector<Op> ops;
  std::vector<uint64_t> streams;
  std::vector<SegmentView> initial;      // empty when the recording is complete
  std::vector<uint64_t> initial_blocks;  // addresses of the first allocations by number
  std::vector<uint64_t> addresses;       // recorded, by number of the allocation
  std::vector<uint64_t> sizes;           // requested, the same
  std::vector<uint64_t> failed_sizes;    // of the requests that failed, rounded
  uint32_t slots = 0;
  std::vector<RecordedCall> segment_calls;
  std::vector<uint32_t> call_events;   // of Recording::events, one for each of them
  std::vector<SegmentWindow> windows;  // by op
  Placement placement;                 // what the driver did between them
  uint32_t pools = 0;                  // highest number
  // Some of the blocks freed at once have sizes that no tensor of numbers has: convolutions ask for
  // workspaces in this way.
  bool has_workspaces = false;
  bool waits_for_events = false;   // some frees completed after later requests
  bool has_doubts = false;         // some ops are doubtful
  bool doubts_are_limits = false;  // which of the two is the more likely
  uint64_t recorded_peak = 0;      // of reserved bytes
  uint64_t largest_request = 0;    // of all that asked, the failed ones too
  // Frees of addresses that were never seen, more streams or pools than k_max_streams or
  // k_max_pools, allocs of addresses that still live: not 0 says that the trace leaves events out
  // (skip_actions) or is damaged.
  uint32_t contradictions = 0;
};

Program compile_program(const Recording& recording);

// Which allocation an op is about; asked of all ops in their order, but for those about none.
class AllocationNumbers {
 public:
  explicit AllocationNumbers(const Program& program)
      : next_(static_cast<uint32_t>(program.initial_blocks.size())), by_slot_(program.slots) {
    for (uint32_t i = 0; i < next_; ++i) by_slot_[i] = i;
  }
  uint32_t of(const Op& op) {
    if (op.kind == OpKind::malloc) by_slot_[op.slot] = next_++;
    return by_slot_[op.slot];
  }

 private:
  uint32_t next_;
  std::vector<uint32_t> by_slot_;
};

}  // namespace cufit::memory
