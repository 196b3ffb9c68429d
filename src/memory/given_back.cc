// SPDX-License-Identifier: Apache-2.0
#include "memory/given_back.h"

#include <algorithm>

namespace cufit::memory {

// An empty stack is one, too: work of the backward pass has no Python frame.
void GivenBack::see(const RecordedEvent& call) {
  if (call.action == Action::segment_alloc && call.stack != k_no_stack)
    requested_by_[call.address] = call.stack;
}

// What equals the segment's own stack says nothing: it may stand for one that was not recorded.
// Expandable segments have none of their own.
GivenBackBy GivenBack::of(const RecordedEvent& release, const RecordedEvent& request,
                          bool after_workspace) const {
  if (release.stack == k_no_stack) return GivenBackBy::unknown;
  const std::vector<uint32_t>& emptying = recording_.emptying_stacks;
  if (std::binary_search(emptying.begin(), emptying.end(), release.stack))
    return GivenBackBy::program;
  const auto own = requested_by_.find(release.address);
  const bool is_callers = release.action == Action::segment_unmap ||
                          (own != requested_by_.end() && own->second != release.stack);
  if (!is_callers || request.stack == k_no_stack) return GivenBackBy::unknown;
  if (release.stack != request.stack) return GivenBackBy::program;
  const bool may_be_cudnn = after_workspace && !recording_.has_native_stacks;
  return may_be_cudnn ? GivenBackBy::unknown : GivenBackBy::request;
}

}  // namespace cufit::memory
