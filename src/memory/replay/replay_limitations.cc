// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/replay_limitations.h"

#include <algorithm>

namespace cufit::memory {
namespace {

// The same calls with the same sizes: then the recording tells every address.
bool as_recorded(const Program& program, const std::vector<SegmentEvent>& log) {
  const auto same = [](const RecordedCall& call, const SegmentEvent& event) {
    return static_cast<uint8_t>(call.kind) == static_cast<uint8_t>(event.action) &&
           call.size == event.size;
  };
  return std::equal(program.segment_calls.begin(), program.segment_calls.end(), log.begin(),
                    log.end(), same);
}

// Segments lie where nothing in the recording tells: it has none from cudaMalloc, they lie as no
// driver known here puts them, or they are freed and requested anew, when the driver may give any
// place that is free.
bool addresses_are_open(const Program& program, const std::vector<SegmentEvent>& log) {
  bool open = !program.placement.follows_rule();
  open = open || std::none_of(program.segment_calls.begin(), program.segment_calls.end(),
                              [](const RecordedCall& call) {
                                return call.kind == RecordedCall::Kind::segment_alloc;
                              });
  for (const SegmentEvent& event : log) {
    if (event.action == SegmentAction::segment_alloc && open) return true;
    open = open || event.action == SegmentAction::segment_free;
  }
  return false;
}

bool same_outcome(const ReplayResult& a, const ReplayResult& b) {
  return a.oom.has_value() == b.oom.has_value() &&
         a.stats.reserved_bytes.peak == b.stats.reserved_bytes.peak;
}

// What PyTorch does under settings that the model accepts without following them.
void add_settings(const Program& program, const Settings& settings,
                  std::vector<std::string>& reasons) {
  for (const std::string& setting : settings.not_modelled) {
    if (setting.rfind("backend:", 0) == 0) {
      reasons.push_back("cuda_malloc_async");
    } else if (setting.rfind("graph_capture_record_stream_reuse:", 0) == 0) {
      if (program.pools > 0) reasons.push_back("graph_capture_reuse");
    } else {
      reasons.push_back(setting);
    }
  }
}

}  // namespace

std::vector<std::string> replay_limitations(
    const Program& program, const ReplayOptions& options, const ReplayResult& result,
    const std::vector<SegmentEvent>& log,
    const std::function<ReplayResult(const Variation&)>& again) {
  std::vector<std::string> reasons;
  add_settings(program, options.allocator.settings, reasons);
  reasons.insert(reasons.end(), options.known_reasons.begin(), options.known_reasons.end());
  if (options.without_pools && program.pools > 0) reasons.push_back("graph_replays");
  if (program.contradictions > 0) reasons.push_back("skipped_actions");
  if (result.workspace_refused || result.served_caught_failure)
    reasons.push_back("cudnn_workspace");
  const bool is_recorded = as_recorded(program, log);
  const bool began_late = !is_recorded && !program.initial.empty();
  if (began_late) reasons.push_back("ring_overflow");
  // What began late says with that already that its memory may lie elsewhere.
  if (!is_recorded && !began_late && options.order == SyntheticMemory::Order::driver &&
      addresses_are_open(program, log)) {
    using Order = SyntheticMemory::Order;
    if (!same_outcome(result, again({Order::descending})) ||
        !same_outcome(result, again({Order::ascending})))
      reasons.push_back("segment_addresses");
  }
  if (!is_recorded && program.waits_for_events &&
      !same_outcome(result, again({options.order, true})))
    reasons.push_back("stream_timing");
  if (program.has_doubts && !same_outcome(result, again({options.order, false, true})))
    reasons.push_back("empty_cache");
  // Neither a limit nor the card was named, and the run took far more than the recorded one had.
  if (!options.is_bounded() && result.stats.reserved_bytes.peak / 3 > program.recorded_peak)
    reasons.push_back("capacity_unknown");
  return reasons;
}

}  // namespace cufit::memory
