// SPDX-License-Identifier: Apache-2.0
#include "fit/common_setup.h"

#include <algorithm>

#include "fit/trace_parts.h"

namespace cufit::fit {
namespace {

using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceMark;

size_t first_step(const TraceEvents& trace) {
  return static_cast<size_t>(
      std::find_if(trace.events.begin(), trace.events.end(),
                   [](const TraceEvent& event) { return is_mark(event, TraceMark::step_begins); }) -
      trace.events.begin());
}

// Or is another kind of call.
bool falls(const TraceEvents& one, const TraceEvents& other, const formats::TraceCall& a,
           const formats::TraceCall& b) {
  if (a.count != b.count) return true;
  const auto x = one.numbers_of(a), y = other.numbers_of(b);
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] > y[i]) return true;
  return false;
}

// Up to where both tell of the same. `other` is of the larger batch size: where something is less
// in it, it is the rest of what a loop goes over.
size_t alike(const TraceEvents& one, const TraceEvents& other, size_t end) {
  for (size_t i = 0; i < end; ++i) {
    const TraceEvent &a = one.events[i], &b = other.events[i];
    if (a.kind != b.kind || a.index != b.index) return i;
    const bool has_site = a.kind == TraceEventKind::alloc || a.kind == TraceEventKind::call;
    if (has_site && !same_site(one, a.site, other, b.site)) return i;
    if (a.kind == TraceEventKind::alloc && a.bytes > b.bytes) return i;
    if (a.kind == TraceEventKind::call &&
        falls(one, other, one.calls[a.index], other.calls[b.index]))
      return i;
  }
  return end;
}

// The events to `common`, then what lives at `begin`, then all from there on.
TraceEvents shortened(const TraceEvents& trace, size_t common, size_t begin) {
  constexpr uint32_t k_gone = UINT32_MAX;
  std::vector<size_t> freed(trace.storage_count(), trace.events.size());
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEventKind::free) freed[event.index] = i;
  }
  TraceEvents out = trace;
  out.events.clear();
  out.calls.clear();
  out.categories.clear();
  std::vector<uint32_t> number(trace.storage_count(), k_gone);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    TraceEvent event = trace.events[i];
    const bool between = i >= common && i < begin;
    if (event.kind == TraceEventKind::alloc) {
      if (between && freed[event.index] < begin) continue;
      out.categories.push_back(trace.categories[event.index]);
      number[event.index] = static_cast<uint32_t>(out.categories.size() - 1);
    }
    if (event.kind == TraceEventKind::alloc || event.kind == TraceEventKind::free) {
      if (number[event.index] == k_gone) continue;
      event.index = number[event.index];
    } else if (event.kind == TraceEventKind::call) {
      if (between) continue;
      out.calls.push_back(trace.calls[event.index]);
      event.index = static_cast<uint32_t>(out.calls.size() - 1);
    }
    out.events.push_back(event);
  }
  return out;
}

}  // namespace

std::optional<std::vector<TraceEvents>> with_common_setup(
    std::span<const TraceEvents* const> traces, KeptSetup kept) {
  size_t common = SIZE_MAX;
  for (const TraceEvents* trace : traces) {
    const size_t begin = first_step(*trace);
    if (begin == trace->events.size()) return std::nullopt;
    common = std::min(common, begin);
  }
  if (kept == KeptSetup::living) common = 0;
  for (const TraceEvents* trace : traces) common = alike(*traces.front(), *trace, common);
  std::vector<TraceEvents> out;
  for (const TraceEvents* trace : traces)
    out.push_back(shortened(*trace, common, first_step(*trace)));
  return out;
}

}  // namespace cufit::fit
