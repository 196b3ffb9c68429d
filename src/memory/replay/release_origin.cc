// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/release_origin.h"

#include <algorithm>

namespace cufit::memory {

// An empty stack is one, too: work of the backward pass has no Python frame.
void ReleaseOrigins::see(const RecordedEvent& call) {
  owners_.push_back(k_no_stack);
  if (call.action == Action::segment_alloc) {
    requested_by_[call.address] = call.stack;
  } else if (call.action == Action::segment_free) {
    const auto owner = requested_by_.find(call.address);
    if (owner != requested_by_.end()) owners_.back() = owner->second;
  }
}

bool ReleaseOrigins::names_empty_cache(uint32_t stack) const {
  const std::vector<uint32_t>& stacks = recording_.emptying_stacks;
  return std::binary_search(stacks.begin(), stacks.end(), stack);
}

// cuDNN's benchmark frees the workspace that it tried algorithms with and then the cache. In nine
// real runs with it 572 of 582 releases come after such a block, and the ten others were retries;
// in runs without it none of 79. One that needs no workspace would look like a retry, so that no
// release of such a run is taken for one.
bool ReleaseOrigins::benchmarks() {
  if (benchmarks_) return *benchmarks_;
  const RecordedEvents& events = recording_.events;
  benchmarks_ = false;
  for (size_t i = 3; i < events.size() && !*benchmarks_; ++i) {
    const Action action = events.action(i);
    if (action != Action::segment_free && action != Action::segment_unmap) continue;
    benchmarks_ =
        events.action(i - 3) == Action::alloc && events.action(i - 2) == Action::free_requested &&
        events.action(i - 1) == Action::free_completed &&
        events[i - 3].address == events[i - 1].address && !names_empty_cache(events[i].stack);
  }
  return *benchmarks_;
}

// What equals the segment's own stack says nothing: it may stand for one that was not recorded.
// Expandable segments have none of their own.
ReleaseOrigin ReleaseOrigins::of(size_t call, const RecordedEvent& release,
                                 const RecordedEvent& request) {
  if (names_empty_cache(release.stack)) return ReleaseOrigin::program;
  if (!recording_.releases_have_stacks || release.stack == k_no_stack ||
      request.stack == k_no_stack)
    return ReleaseOrigin::unknown;
  const bool is_callers = release.action == Action::segment_unmap ||
                          (owners_[call] != k_no_stack && owners_[call] != release.stack);
  if (!is_callers) return ReleaseOrigin::unknown;
  if (release.stack != request.stack) return ReleaseOrigin::program;
  const bool may_be_cudnn = !recording_.has_native_stacks && benchmarks();
  return may_be_cudnn ? ReleaseOrigin::unknown : ReleaseOrigin::request;
}

}  // namespace cufit::memory
