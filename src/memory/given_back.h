// SPDX-License-Identifier: Apache-2.0
// Who gave cached segments back, as far as the stacks of a recording tell: the program by
// torch.cuda.empty_cache(), or a request that could not be served otherwise. Used by program.cc.
//
// Torch records the stack of whoever releases a segment (c10/cuda/CUDACachingAllocator.cpp,
// release_block): a request's own stack, which its alloc or oom has too, or, where frees are
// recorded with stacks (context="all", the default), that of empty_cache(). Where there is none,
// and before torch 2.1, it is the stack that the segment was requested with. cuDNN's benchmark
// empties the cache from C++, inside a convolution, right after it freed the workspace that it
// tried algorithms with: without frames of C++ it has the stack of the request that follows.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "memory/recording.h"

namespace cufit::memory {

enum class GivenBackBy : uint8_t { unknown, program, request };

class GivenBack {
 public:
  explicit GivenBack(const Recording& recording) : recording_(recording) {}

  // Segment calls in their order, before of() is asked about a later one.
  void see(const RecordedEvent& call);
  // `release`: a segment_free or segment_unmap; `request`: the alloc or oom that follows it;
  // `after_workspace`: what came before is a block that was freed at once. What holds for one
  // release holds for those next to it with the same stack.
  GivenBackBy of(const RecordedEvent& release, const RecordedEvent& request,
                 bool after_workspace) const;

 private:
  const Recording& recording_;
  std::unordered_map<uint64_t, uint32_t> requested_by_;  // stacks of segments, by address
};

}  // namespace cufit::memory
