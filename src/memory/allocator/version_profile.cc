// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/version_profile.h"

namespace cufit::memory {

VersionProfile version_profile(uint32_t major, uint32_t minor) {
  VersionProfile version;
  version.major = major;
  version.minor = minor;
  version.expandable_segments = version.at_least(2, 1);
  version.non_split_rounding_key = version.at_least(2, 5);
  version.use_on_oom_pools = version.at_least(2, 7);
  version.settings_in_core = version.at_least(2, 9);
  version.newest_pool_first = version.at_least(2, 9);
  version.large_segment_size_key = version.at_least(2, 9);
  version.mempool_fallback_first = version.at_least(2, 11);
  version.fraction_one_is_no_limit = version.at_least(2, 12);
  version.throw_on_cudamalloc_oom = version.at_least(2, 12);
  version.only_capture_blocks_release = version.at_least(2, 13);
  return version;
}

}  // namespace cufit::memory
