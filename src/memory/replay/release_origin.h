// SPDX-License-Identifier: Apache-2.0
// Who gave cached segments back, as far as the stacks of a recording tell: the program by
// torch.cuda.empty_cache(), or a request that could not be served otherwise. Used by
// segment_call_windows.cc.
//
// From torch 2.3 on a release is recorded with the stack of whoever asked for it
// (c10/cuda/CUDACachingAllocator.cpp, release_block): a request's own stack, which its alloc or oom
// has too, or, where frees have stacks of their own (context="all", the default), that of
// empty_cache(). Where there is none it is the stack that the segment was requested with, or
// nothing. Before, it was that one, or in 2.0 that of the last allocation there. cuDNN's benchmark
// empties the cache from C++, inside a convolution: without frames of C++ it has the stack of the
// request that follows.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/snapshot/recording.h"

namespace cufit::memory {

enum class ReleaseOrigin : uint8_t { unknown, program, request };

class ReleaseOrigins {
 public:
  explicit ReleaseOrigins(const Recording& recording) : recording_(recording) {}

  // All calls of segments, in their order.
  void see(const RecordedEvent& call);
  // `release`: the call of that number, a segment_free or segment_unmap; `request`: the alloc or
  // oom that follows it. What holds for one release holds for those next to it with its stack.
  ReleaseOrigin of(size_t call, const RecordedEvent& release, const RecordedEvent& request);

 private:
  bool names_empty_cache(uint32_t stack) const;
  bool benchmarks();

  const Recording& recording_;
  std::unordered_map<uint64_t, uint32_t> requested_by_;  // stacks of segments, by address
  std::vector<uint32_t> owners_;  // by call: what the segment that it frees was requested with
  std::optional<bool> benchmarks_;
};

}  // namespace cufit::memory
