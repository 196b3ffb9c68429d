// SPDX-License-Identifier: Apache-2.0
#include "fit/step_program_builder.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fit/exact_size_rule.h"

namespace cufit::fit {
namespace {

using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;

struct HashOfSizes {
  size_t operator()(const std::vector<uint64_t>& sizes) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const uint64_t size : sizes) {
      hash = (hash ^ size) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return static_cast<size_t>(hash);
  }
};

class Builder {
 public:
  explicit Builder(std::span<const Traced> traces) : traces_(traces) {
    for (const Traced& traced : traces) out_.batches.push_back(traced.batch);
  }

  StepProgram run() {
    const TraceEvents& first = *traces_.front().trace;
    out_.texts = first.texts;
    out_.sites = first.sites;
    out_.facts = first.facts;
    for (const Traced& traced : traces_) add_notes(*traced.trace);
    out_.events.reserve(first.events.size());
    out_.storages.resize(first.storage_count());
    for (size_t i = 0; i < first.events.size(); ++i) add_event(first.events[i], i);
    out_.complete = true;
    out_.end = first.end;
    for (const Traced& traced : traces_) {
      out_.complete = out_.complete && traced.trace->complete;
      out_.end = std::max(out_.end, traced.trace->end);
    }
    finish_storages(first);
    return std::move(out_);
  }

 private:
  void add_event(const TraceEvent& event, size_t number) {
    StepEvent to{event.index, event.site, 0, StepEventKind::mark};
    switch (event.kind) {
      case TraceEventKind::alloc:
        to.kind = StepEventKind::alloc;
        to.size =
            size_of([number](const TraceEvents& trace) { return trace.events[number].bytes; });
        out_.storages[event.index].alloc = static_cast<uint32_t>(number);
        out_.storages[event.index].free = UINT32_MAX;
        break;
      case TraceEventKind::free:
        to.kind = StepEventKind::free;
        out_.storages[event.index].free = static_cast<uint32_t>(number);
        break;
      case TraceEventKind::mark:
        if (event.index == static_cast<uint32_t>(TraceMark::step_ends)) ++out_.steps;
        break;
      case TraceEventKind::call:
        to.kind = StepEventKind::call;
        add_call(event.index, event.site);
        break;
    }
    out_.events.push_back(to);
  }

  void add_call(uint32_t call, uint32_t site) {
    const formats::TraceCall& from = traces_.front().trace->calls[call];
    out_.calls.push_back({site, static_cast<uint32_t>(out_.call_numbers.size()), from.count});
    for (uint32_t i = 0; i < from.count; ++i)
      out_.call_numbers.push_back(size_of([call, i](const TraceEvents& trace) {
        return trace.numbers[trace.calls[call].first + i];
      }));
  }

  // The number of a size in StepProgram::sizes.
  template <class Of>
  uint32_t size_of(const Of& of) {
    scratch_.clear();
    for (const Traced& traced : traces_) scratch_.push_back(of(*traced.trace));
    const auto found = known_.find(scratch_);
    if (found != known_.end()) return found->second;
    const auto number = static_cast<uint32_t>(out_.sizes.size());
    Size size = rule_for(out_.batches, scratch_);
    size.traced = static_cast<uint32_t>(out_.traced_sizes.size());
    out_.traced_sizes.insert(out_.traced_sizes.end(), scratch_.begin(), scratch_.end());
    out_.sizes.push_back(size);
    known_.emplace(scratch_, number);
    return number;
  }

  void add_notes(const TraceEvents& trace) {
    for (const formats::TraceNote& note : trace.notes) {
      const auto key = std::tuple<std::string_view, std::string_view, std::string_view>(
          trace.texts[note.kind], trace.texts[note.detail], trace.texts[note.source]);
      if (!notes_.emplace(key, 0).second) continue;
      if (&trace == traces_.front().trace) {
        out_.notes.push_back(note);
        continue;
      }
      const auto first = static_cast<uint32_t>(out_.texts.size());
      for (const uint32_t text : {note.kind, note.detail, note.source})
        out_.texts.push_back(trace.texts[text]);
      out_.notes.push_back({first, first + 1, first + 2});
    }
  }

  void finish_storages(const TraceEvents& first) {
    std::vector<uint32_t> backward;  // by event: how many before it are of a backward pass
    backward.reserve(out_.events.size() + 1);
    uint32_t count = 0;
    for (const StepEvent& event : out_.events) {
      backward.push_back(count);
      const bool has_site = event.kind == StepEventKind::alloc || event.kind == StepEventKind::call;
      if (has_site && out_.sites[event.site].phase == TracePhase::backward) ++count;
    }
    backward.push_back(count);
    for (size_t i = 0; i < out_.storages.size(); ++i) {
      Storage& storage = out_.storages[i];
      storage.free = std::min(storage.free, static_cast<uint32_t>(out_.events.size()));
      storage.category = first.categories[i];
      storage.crosses_backward = backward[storage.free] > backward[storage.alloc];
    }
  }

  std::span<const Traced> traces_;
  StepProgram out_;
  std::vector<uint64_t> scratch_;
  std::unordered_map<std::vector<uint64_t>, uint32_t, HashOfSizes> known_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, int> notes_;
};

}  // namespace

StepProgram build_step_program(std::span<const Traced> traces) { return Builder(traces).run(); }

}  // namespace cufit::fit
