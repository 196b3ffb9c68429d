// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/traces.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "fit/answer/plan_variants.h"
#include "fit/answer/trace_failure.h"
#include "fit/trace_parts.h"

namespace cufit::fit {
namespace {

using formats::StorageCategory;

constexpr uint64_t k_most_bytes = uint64_t{1} << 40;

std::vector<uint64_t> bytes_of(const formats::TraceEvents& trace, StorageCategory category) {
  std::vector<uint64_t> out;
  for (const formats::TraceEvent& event : trace.events) {
    if (is_mark(event, formats::TraceMark::after_steps)) break;
    if (event.kind == formats::TraceEventKind::alloc && trace.categories[event.index] == category)
      out.push_back(event.bytes);
  }
  return out;
}

bool others_follow(const formats::TraceEvents& first, uint64_t own,
                        const formats::TraceEvents& second, uint64_t batch) {
  const std::vector<uint64_t> mine = bytes_of(first, StorageCategory::unknown);
  const std::vector<uint64_t> others = bytes_of(second, StorageCategory::unknown);
  if (mine.size() != others.size()) return false;
  uint64_t all = 0, following = 0;
  for (size_t i = 0; i < mine.size(); ++i) {
    const uint64_t bytes = std::min(mine[i], k_most_bytes);
    all += bytes;
    if (bytes * batch == std::min(others[i], k_most_bytes) * own) following += bytes;
  }
  return following > all / 2;
}

}  // namespace

std::vector<uint64_t> other_batches(uint64_t first) {
  if (first == 1) return {2, 4};
  return {first * 2};
}

std::optional<uint64_t> batch_by_inputs(const formats::TraceEvents& first,
                                        const formats::TraceEvents& second, uint64_t batch) {
  const std::vector<uint64_t> mine = bytes_of(first, StorageCategory::input);
  const std::vector<uint64_t> others = bytes_of(second, StorageCategory::input);
  std::optional<uint64_t> found;
  if (mine.size() != others.size()) return std::nullopt;
  for (size_t i = 0; i < mine.size(); ++i) {
    const uint64_t scaled = std::min(mine[i], k_most_bytes) * batch;
    if (mine[i] == others[i]) continue;
    if (mine[i] == 0 || others[i] == 0 || scaled % others[i] != 0) return std::nullopt;
    if (found && *found != scaled / others[i]) return std::nullopt;
    found = scaled / others[i];
  }
  if (!found && !mine.empty()) return batch;
  return found;
}

bool computes_gradients(const formats::TraceEvents& events) {
  const auto backward = [&](uint32_t site) {
    return events.sites[site].phase == formats::TracePhase::backward;
  };
  return std::any_of(events.events.begin(), events.events.end(),
                     [&](const formats::TraceEvent& event) {
                       return event.kind == formats::TraceEventKind::alloc && backward(event.site);
                     }) ||
         std::any_of(events.calls.begin(), events.calls.end(),
                     [&](const formats::TraceCall& call) { return backward(call.site); });
}

bool follows_number(const formats::TraceEvents& first, uint64_t own,
                    const formats::TraceEvents& second, uint64_t batch) {
  const std::optional<uint64_t> before = parse_uint(first.fact("batch_found"));
  const std::optional<uint64_t> now = parse_uint(second.fact("batch_found"));
  // The loader takes the number as it is, or knows nothing of it.
  if (now != before && (before != own || now != batch)) return false;
  const std::optional<uint64_t> by_inputs = batch_by_inputs(first, second, batch);
  if (by_inputs && *by_inputs != batch) return *by_inputs == own;
  return others_follow(first, own, second, batch);
}

void add_trace(Traces& traces, formats::TraceEvents events) {
  const std::vector<std::string> switches = switches_of(events);
  if (!switches.empty()) {
    auto variant = std::find_if(
        traces.variants.begin(), traces.variants.end(),
        [&](const VariantTraces& candidate) { return candidate.switches == switches; });
    if (variant == traces.variants.end())
      variant = traces.variants.insert(variant, VariantTraces{switches, {}});
    variant->traces.push_back(std::move(events));
    return;
  }
  add_warnings(traces.warnings, trace_warnings(events));
  if (!traces.own_batch) traces.own_batch = parse_uint(events.fact("batch_found"));
  traces.plain.push_back(std::move(events));
}

void keep_micro_batches_apart(Traces& traces, bool plans) {
  for (formats::TraceEvents& trace : traces.plain) {
    if (plans) traces.whole.push_back(trace);
    trace = without_micro_batches(trace);
  }
}

}  // namespace cufit::fit
