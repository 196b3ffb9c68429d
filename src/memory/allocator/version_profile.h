// SPDX-License-Identifier: Apache-2.0
// What changed in PyTorch's caching allocator between torch 2.0 and 2.14, as flags. The core
// (sizes, best fit, split, expandable segments, order of release) is the same in all of them as far
// as it could be read; where only a span of versions is known, the flag turns at its first version.
#pragma once

#include <cstdint>

namespace cufit::memory {

struct VersionProfile {
  uint32_t major = 2;
  uint32_t minor = 14;
  bool expandable_segments = true;     // 2.1
  bool non_split_rounding_key = true;  // 2.5; before it the bound was 20 MiB and no setting
  bool use_on_oom_pools = true;        // 2.7: MemPool(use_on_oom=True)
  // 2.9, when the settings moved to c10/core: max_split_size_mb may equal the large segment
  // (before, it had to exceed 20), and "[256:4,>:1]" leaves the entry of 256 alone (before, ">"
  // overwrote it).
  bool settings_in_core = true;
  bool newest_pool_first = true;  // 2.9: of several pools under way the last begun is asked first
  bool large_segment_size_key = true;  // 2.9 at the earliest, 2.13 at the latest
  bool mempool_fallback_first =
      true;  // 2.11: before cached blocks are released; earlier the last step
  bool fraction_one_is_no_limit = true;  // 2.12
  bool throw_on_cudamalloc_oom = true;   // 2.12
  // 2.13: a MemPool in use no longer forbids to release cached blocks, a capture still does.
  bool only_capture_blocks_release = true;

  bool operator==(const VersionProfile&) const = default;
  bool at_least(uint32_t want_major, uint32_t want_minor) const {
    return major > want_major || (major == want_major && minor >= want_minor);
  }
};

// Versions before 2.0 are treated as 2.0, later ones than 2.14 as 2.14 with their own number.
VersionProfile version_profile(uint32_t major, uint32_t minor);

}  // namespace cufit::memory
