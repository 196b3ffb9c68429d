// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/traces.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "fit/answer/plan_variants.h"
#include "fit/answer/trace_failure.h"
#include "fit/trace_parts.h"

namespace cufit::fit {

std::vector<uint64_t> other_batches(uint64_t first) {
  if (first == 1) return {2, 4};
  return {first * 2};
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
