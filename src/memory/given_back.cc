// SPDX-License-Identifier: Apache-2.0
#include "memory/given_back.h"

#include <algorithm>

namespace cufit::memory {
namespace {

bool is_known(uint32_t stack) { return stack != k_no_stack && stack != k_empty_stack; }

}  // namespace

void GivenBack::see(const RecordedEvent& call) {
  if (call.action == Action::segment_alloc && is_known(call.stack))
    requested_by_[call.address] = call.stack;
}

// What equals the segment's own stack says nothing: it may stand for one that was not recorded.
GivenBackBy GivenBack::of(const RecordedEvent& release, const RecordedEvent& request) const {
  if (!is_known(release.stack)) return GivenBackBy::unknown;
  const std::vector<uint32_t>& emptying = recording_.emptying_stacks;
  if (std::binary_search(emptying.begin(), emptying.end(), release.stack))
    return GivenBackBy::program;
  const auto own = requested_by_.find(release.address);
  const bool is_callers = own != requested_by_.end() && own->second != release.stack;
  if (!is_callers || !is_known(request.stack)) return GivenBackBy::unknown;
  return release.stack == request.stack ? GivenBackBy::request : GivenBackBy::program;
}

}  // namespace cufit::memory
