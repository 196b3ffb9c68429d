// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/snapshot_recording.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/number.h"

namespace cufit::memory {
namespace {

class PoolNumbers {
 public:
  uint32_t number(const std::optional<PoolId>& pool) {
    if (!pool || *pool == PoolId()) return 0;
    const auto next = static_cast<uint32_t>(numbers_.size() + 1);
    return numbers_.try_emplace({pool->first, pool->second}, next).first->second;
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> numbers_;
};

uint64_t present(uint64_t value) { return value == k_absent ? 0 : value; }

BlockUse block_use(BlockState state) {
  if (state == BlockState::active_allocated) return BlockUse::allocated;
  return state == BlockState::inactive ? BlockUse::inactive : BlockUse::pending_free;
}

SegmentView segment_view(const Segment& segment, PoolNumbers& pools) {
  SegmentView view;
  view.address = segment.address;
  view.size = segment.total_size;
  view.stream = segment.stream;
  view.pool = pools.number(segment.pool);
  view.is_small = segment.is_small;
  view.is_expandable = segment.is_expandable;
  for (const Block& block : segment.blocks) {
    BlockView part;
    part.address = block.address;
    part.size = block.size;
    part.requested_size = present(block.requested_size);
    part.state = block_use(block.state);
    view.blocks.push_back(part);
  }
  return view;
}

// An event lies in the pool of the final segment that holds its address, from the event that made
// the segment on.
std::vector<RecordedEvents::PoolRange> pool_ranges(const std::vector<SegmentView>& segments) {
  std::vector<RecordedEvents::PoolRange> ranges;
  for (const SegmentView& segment : segments)
    if (segment.pool != 0) ranges.push_back({segment.address, segment.size, segment.pool, 0});
  return ranges;
}

// cuDNN's benchmark calls it in C++.
bool names_empty_cache(const Snapshot& snapshot, const Frame& frame) {
  const std::string_view name = snapshot.text(frame.name);
  if (name.find("emptyCache") != std::string_view::npos) return true;
  if (name != "empty_cache") return false;
  std::string file(snapshot.text(frame.filename));
  std::replace(file.begin(), file.end(), '\\', '/');
  return file.ends_with("/torch/cuda/memory.py") || file.ends_with("/torch/accelerator/memory.py");
}

std::vector<uint32_t> emptying_stacks(const Snapshot& snapshot) {
  const Stacks& stacks = snapshot.stacks;
  std::vector<bool> named;
  for (uint32_t i = 0; i < stacks.frame_count(); ++i)
    named.push_back(names_empty_cache(snapshot, stacks.frame(i)));
  std::vector<uint32_t> out;
  if (std::find(named.begin(), named.end(), true) == named.end()) return out;
  for (uint32_t i = 0; i < stacks.size(); ++i) {
    const std::span<const uint32_t> frames = stacks[i];
    if (std::any_of(frames.begin(), frames.end(), [&](uint32_t frame) { return named[frame]; }))
      out.push_back(i);
  }
  return out;
}

}  // namespace

Settings settings_of_fields(const AllocatorSettings& fields) {
  Settings settings;
  settings.max_split_size = fields.max_split_size.value_or(k_no_max_split);
  settings.garbage_collection_threshold = fields.garbage_collection_threshold.value_or(0);
  settings.expandable_segments = fields.expandable_segments.value_or(false);
  for (const auto& [key, divisions] : fields.roundup_power2_divisions) {
    const std::optional<uint64_t> mib = parse_uint(key);
    if (!mib || !is_power_of_two(*mib) || floor_log2(*mib) >= 16) continue;
    const bool sound = divisions == 0 || is_power_of_two(divisions);
    settings.roundup_power2_divisions[floor_log2(*mib)] = sound ? divisions : 0;
  }
  return settings;
}

Result<Settings> recorded_settings(const Snapshot& snapshot, const VersionProfile& version) {
  if (!snapshot.settings) return Settings();
  if (!snapshot.settings->conf || snapshot.settings->conf->empty())
    return settings_of_fields(*snapshot.settings);
  Result<Settings> settings = parse_allocator_settings(*snapshot.settings->conf, version);
  if (!settings) return std::move(settings.error()).in("the snapshot's allocator settings");
  return settings;
}

Result<Recording> recorded_events(const Snapshot& snapshot, uint32_t device) {
  if (device >= snapshot.traces.size())
    return fail(Code::not_found, format("the snapshot has no trace of device {}", device));
  const Trace& trace = snapshot.traces[device];
  if (trace.count > UINT32_MAX / 2)
    return fail(Code::unsupported, format("a trace of {} events", trace.count));
  Recording recording;
  PoolNumbers pools;
  for (const Segment& segment : snapshot.segments)
    if (segment.device == device) recording.final_segments.push_back(segment_view(segment, pools));
  std::vector<RecordedEvents::Context> contexts;
  bool named = false;
  for (const EventContext& context : snapshot.contexts) {
    contexts.push_back({context.stream, pools.number(context.pool)});
    named = named || context.pool.has_value();
  }
  recording.events = RecordedEvents(
      snapshot, trace, std::move(contexts),
      named ? std::vector<RecordedEvents::PoolRange>() : pool_ranges(recording.final_segments));
  recording.emptying_stacks = emptying_stacks(snapshot);
  recording.has_native_stacks = !snapshot.python_stacks.empty();
  recording.releases_have_stacks = snapshot.settings.has_value();
  return recording;
}

Result<Recording> recording_of(const Snapshot& snapshot, uint32_t device,
                               const VersionProfile& version) {
  CUFIT_TRY(recording, recorded_events(snapshot, device));
  CUFIT_TRY(settings, recorded_settings(snapshot, version));
  recording.version = version;
  recording.settings = std::move(settings);
  return recording;
}

}  // namespace cufit::memory
