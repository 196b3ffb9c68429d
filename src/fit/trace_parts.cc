// SPDX-License-Identifier: Apache-2.0
#include "fit/trace_parts.h"

#include <algorithm>

namespace cufit::fit {
namespace {

using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceMark;

using EventPlace = std::vector<TraceEvent>::const_iterator;

EventPlace beginning(const TraceEvents& trace, TraceMark mark) {
  return std::find_if(trace.events.begin(), trace.events.end(),
                      [mark](const TraceEvent& event) { return is_mark(event, mark); });
}

EventPlace end_of_steps(const TraceEvents& trace) {
  return std::min(beginning(trace, TraceMark::micro_batch),
                  beginning(trace, TraceMark::after_steps));
}

TraceEvents up_to(const TraceEvents& trace, EventPlace end) {
  if (end == trace.events.end()) return trace;
  TraceEvents out = trace;
  out.events.assign(trace.events.begin(), end);
  const auto of_kind = [&out](TraceEventKind kind) {
    return static_cast<size_t>(
        std::count_if(out.events.begin(), out.events.end(),
                      [kind](const TraceEvent& event) { return event.kind == kind; }));
  };
  out.categories.resize(of_kind(TraceEventKind::alloc));
  out.calls.resize(of_kind(TraceEventKind::call));
  return out;
}

}  // namespace

bool same_site(const TraceEvents& a, uint32_t of_a, const TraceEvents& b, uint32_t of_b) {
  const formats::TraceSite &x = a.sites[of_a], &y = b.sites[of_b];
  return x.phase == y.phase && x.stream == y.stream && a.texts[x.op] == b.texts[y.op] &&
         a.texts[x.module] == b.texts[y.module] && a.texts[x.source] == b.texts[y.source];
}

TraceEvents without_micro_batches(const TraceEvents& trace) {
  return up_to(trace, beginning(trace, TraceMark::micro_batch));
}

TraceEvents steps_alone(const TraceEvents& trace) { return up_to(trace, end_of_steps(trace)); }

bool goes_on(const TraceEvents& trace) {
  return beginning(trace, TraceMark::after_steps) != trace.events.end();
}

bool has_micro_batches(const TraceEvents& trace) {
  if (trace.fact("accumulated") != "1") return false;
  const auto begin = beginning(trace, TraceMark::micro_batch);
  return std::any_of(begin, trace.events.end(),
                     [](const TraceEvent& event) { return is_mark(event, TraceMark::step_ends); });
}

}  // namespace cufit::fit
