// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/replay_elision.h"

#include <algorithm>

#include "memory/replay/replay_limitations.h"
#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace {

// Of one verified: the version is the same.
bool same_run(const ReplayOptions& a, const ReplayOptions& b) {
  return a.allocator.settings == b.allocator.settings &&
         a.allocator.allowed_memory_maximum == b.allocator.allowed_memory_maximum &&
         a.allocator.total_memory == b.allocator.total_memory && a.capacity == b.capacity &&
         a.with_reasons == b.with_reasons && a.left_out == b.left_out &&
         a.without_pools == b.without_pools && a.known_reasons == b.known_reasons;
}

bool is_verified(const VerifiedRecording& verified, const ReplayOptions& options) {
  return verified.verification.exact() && verified.verification.is_plain &&
         verified.program->contradictions == 0 && is_recorded_run(verified, options);
}

}  // namespace

// Blocks grow by joining only inside a segment. One of another kind than now is made may be there
// from the start.
void drop_idle_settings(const Program& program, Settings& settings) {
  if (settings.expandable_segments) return;
  uint64_t largest =
      get_allocation_size(round_size(program.largest_request, settings.roundup_power2_divisions),
                          settings.large_segment_size);
  largest = std::max(largest, settings.large_segment_size);
  for (const SegmentView& segment : program.initial) largest = std::max(largest, segment.size);
  if (largest < settings.max_split_size) settings.max_split_size = k_no_max_split;
}

std::vector<size_t> first_alike(const std::vector<ReplayOptions>& options) {
  std::vector<size_t> first;
  for (size_t i = 0; i < options.size(); ++i) {
    size_t alike = 0;
    while (!same_run(options[alike], options[i])) ++alike;
    first.push_back(alike);
  }
  return first;
}

// Garbage collection and a fraction of the card are limits.
bool is_recorded_run(const VerifiedRecording& verified, const ReplayOptions& options) {
  ReplayOptions unbounded;
  unbounded.allocator.settings = verified.recording.settings;
  unbounded.with_reasons = options.with_reasons;
  unbounded.known_reasons = options.known_reasons;
  drop_idle_settings(*verified.program, unbounded.allocator.settings);
  const Settings& settings = unbounded.allocator.settings;
  return settings.garbage_collection_threshold == 0 && !settings.per_process_memory_fraction &&
         same_run(options, unbounded);
}

ReplayResult result_of(const VerifiedRecording& verified, const ReplayOptions& options) {
  if (!is_verified(verified, options)) return replay(*verified.program, options);
  ReplayResult result = verified.verification.result;
  if (!options.with_reasons) return result;
  std::vector<SegmentEvent> log;
  for (const RecordedCall& call : verified.program->segment_calls)
    log.push_back({static_cast<SegmentAction>(call.kind), call.address, call.size, 0, 0});
  result.replay_limitations = replay_limitations(*verified.program, options, result, log,
                                                 [&](const Variation&) { return result; });
  return result;
}

}  // namespace cufit::memory
