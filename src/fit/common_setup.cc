// SPDX-License-Identifier: Apache-2.0
#include "fit/common_setup.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

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

// The events that made what lives at `begin`.
std::vector<const TraceEvent*> living_at(const TraceEvents& trace, size_t begin) {
  std::vector<bool> gone(trace.storage_count());
  for (size_t i = 0; i < begin; ++i)
    if (trace.events[i].kind == TraceEventKind::free) gone[trace.events[i].index] = true;
  std::vector<const TraceEvent*> out;
  for (size_t i = 0; i < begin; ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEventKind::alloc && !gone[event.index]) out.push_back(&event);
  }
  return out;
}

using Living = std::vector<const TraceEvent*>;
// No program has more when it begins; each is kept with its names.
constexpr size_t k_most_living = 1u << 20;
using SiteNames = std::tuple<std::string_view, std::string_view, std::string_view, int, uint64_t>;

SiteNames names_of(const TraceEvents& trace, const TraceEvent& event) {
  const formats::TraceSite& site = trace.sites[event.site];
  return {trace.texts[site.op], trace.texts[site.module], trace.texts[site.source],
          static_cast<int>(site.phase), site.stream};
}

// Takes the first of those at a key; SIZE_MAX where none is left.
template <class Key>
size_t take_storage(std::map<Key, std::vector<size_t>>& from, const Key& key) {
  const auto found = from.find(key);
  if (found == from.end() || found->second.empty()) return SIZE_MAX;
  const size_t out = found->second.back();
  found->second.pop_back();
  return out;
}

// By what lives in one trace: its like in the other, of the same size where there is one at the
// same place of the program, else the next of that place. Nothing where places differ.
std::optional<std::vector<size_t>> likes(const TraceEvents& one, const Living& of_one,
                                         const TraceEvents& other, const Living& of_other) {
  if (of_one.size() != of_other.size() || of_one.size() > k_most_living) return std::nullopt;
  std::map<std::pair<SiteNames, uint64_t>, std::vector<size_t>> same;
  for (size_t i = of_other.size(); i-- > 0;)
    same[{names_of(other, *of_other[i]), of_other[i]->bytes}].push_back(i);
  std::vector<size_t> out;
  out.reserve(of_one.size());
  for (const TraceEvent* event : of_one)
    out.push_back(take_storage(same, {names_of(one, *event), event->bytes}));
  std::vector<bool> taken(of_other.size());
  for (const size_t like : out)
    if (like != SIZE_MAX) taken[like] = true;
  std::map<SiteNames, std::vector<size_t>> left;
  for (size_t i = of_other.size(); i-- > 0;)
    if (!taken[i]) left[names_of(other, *of_other[i])].push_back(i);
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == SIZE_MAX) out[i] = take_storage(left, names_of(one, *of_one[i]));
    if (out[i] == SIZE_MAX) return std::nullopt;
  }
  return out;
}

// Whether something of `one` would be less in the other, of the larger batch size.
bool any_less(const Living& of_one, const Living& of_other, const std::vector<size_t>& like) {
  for (size_t i = 0; i < of_one.size(); ++i)
    if (of_other[like[i]]->bytes < of_one[i]->bytes) return true;
  return false;
}

// Nothing where the order of both is to be believed.
std::optional<std::vector<size_t>> other_order(const TraceEvents& one, const TraceEvents& other) {
  const Living of_one = living_at(one, first_step(one));
  const Living of_other = living_at(other, first_step(other));
  if (of_one.size() != of_other.size()) return std::nullopt;
  std::vector<size_t> as_made(of_one.size());
  std::iota(as_made.begin(), as_made.end(), size_t{0});
  if (!any_less(of_one, of_other, as_made)) return std::nullopt;
  std::optional<std::vector<size_t>> like = likes(one, of_one, other, of_other);
  if (like && any_less(of_one, of_other, *like)) return std::nullopt;
  return like;
}

// A trace in front of whose first step nothing is but what lives there, and marks: that in another
// order.
TraceEvents reordered(const TraceEvents& trace, const std::vector<size_t>& order) {
  TraceEvents out = trace;
  std::vector<uint32_t> number(trace.storage_count());
  std::iota(number.begin(), number.end(), uint32_t{0});
  std::vector<size_t> places;  // of the storages' events
  for (size_t i = 0; places.size() < order.size(); ++i)
    if (trace.events[i].kind == TraceEventKind::alloc) places.push_back(i);
  for (size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = static_cast<uint32_t>(i);
    out.events[places[i]] = trace.events[places[order[i]]];
    out.categories[i] = trace.categories[order[i]];
  }
  const auto is_free = [](const TraceEvent& event) { return event.kind == TraceEventKind::free; };
  for (TraceEvent& event : out.events)
    if (is_free(event) || event.kind == TraceEventKind::alloc) event.index = number[event.index];
  for (auto first = out.events.begin(); first != out.events.end();) {
    first = std::find_if(first, out.events.end(), is_free);
    const auto last = std::find_if_not(first, out.events.end(), is_free);
    std::sort(first, last,
              [](const TraceEvent& a, const TraceEvent& b) { return a.index < b.index; });
    first = last;
  }
  return out;
}

}  // namespace

bool made_in_other_order(std::span<const TraceEvents* const> traces) {
  return std::any_of(traces.begin(), traces.end(), [&traces](const TraceEvents* trace) {
    return other_order(*traces.front(), *trace).has_value();
  });
}

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
  if (kept == KeptSetup::common) return out;
  for (size_t i = 1; i < out.size(); ++i)
    if (const auto order = other_order(out.front(), out[i])) out[i] = reordered(out[i], *order);
  return out;
}

}  // namespace cufit::fit
