// SPDX-License-Identifier: Apache-2.0
// The string of PYTORCH_CUDA_ALLOC_CONF / PYTORCH_ALLOC_CONF as PyTorch reads it: tokens split at
// ",:[]", spaces dropped, booleans exactly True or False, one check per key. Keys that change no
// placement (pinned_*, release_lock_on_cudamalloc) are checked and forgotten. What the model cannot
// follow is accepted and named in `not_modelled`, never imitated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/allocator/rounding.h"
#include "memory/allocator/version_profile.h"

namespace cufit::memory {

constexpr uint64_t k_no_max_split = UINT64_MAX;  // the default; -1 in snapshots

struct Settings {
  uint64_t max_split_size = k_no_max_split;
  uint64_t max_non_split_rounding_size = k_large_buffer;
  double garbage_collection_threshold = 0;  // 0: off
  PowerOfTwoDivisions roundup_power2_divisions{};
  bool expandable_segments = false;
  uint64_t large_segment_size = k_large_buffer;
  std::optional<double> per_process_memory_fraction;
  bool throw_on_cudamalloc_oom = false;
  // Settings that a replay does not follow: "backend:cudaMallocAsync",
  // "graph_capture_record_stream_reuse:True"
  std::vector<std::string> not_modelled;
  bool operator==(const Settings&) const = default;
};

// A usage error names the key and the byte where the text goes wrong.
Result<Settings> parse_allocator_settings(std::string_view text, const VersionProfile& version);
// The name of every setting that some version knows.
std::vector<std::string_view> allocator_setting_keys();

}  // namespace cufit::memory
