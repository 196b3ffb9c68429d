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

std::vector<uint64_t> inputs_of(const formats::TraceEvents& trace) {
  std::vector<uint64_t> out;
  for (const formats::TraceEvent& event : trace.events) {
    if (is_mark(event, formats::TraceMark::after_steps)) break;
    if (event.kind == formats::TraceEventKind::alloc &&
        trace.categories[event.index] == formats::StorageCategory::input)
      out.push_back(event.bytes);
  }
  return out;
}

}  // namespace

std::vector<uint64_t> other_batches(uint64_t first) {
  if (first == 1) return {2, 4};
  return {first * 2};
}

std::optional<uint64_t> batch_by_inputs(const formats::TraceEvents& first,
                                        const formats::TraceEvents& second, uint64_t batch) {
  constexpr uint64_t k_most_bytes = uint64_t{1} << 40;
  const std::vector<uint64_t> mine = inputs_of(first), others = inputs_of(second);
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
