// SPDX-License-Identifier: Apache-2.0
#include "fit/recorded_program.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "fit/matched_recordings.h"

namespace cufit::fit {
namespace {

using formats::BatchGrowth;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;

// Of two recordings of one program nearly all storages go together.
constexpr size_t k_least_matched_percent = 80;

struct Part {
  const TraceEvents* events = nullptr;
  std::span<const BatchGrowth> growth;
  bool has_workspaces = false;
  uint64_t batch = 0;
};

// A size as value at `base` and bytes for each further sample.
struct RecordedProgramLine {
  uint64_t at_base = 0, slope = 0;
};

enum class View : uint8_t { point, upper_above, upper_below, lower_above, lower_below };

struct Evidence {
  uint64_t bytes = 0;  // at the base batch
  uint64_t other = 0;  // at the other one
  BatchGrowth growth = BatchGrowth::stays;
  bool matched = false;
};

class Sizes {
 public:
  Sizes(uint64_t base, uint64_t other, bool has_workspaces)
      : base_(base), other_(other), has_workspaces_(has_workspaces) {}

  // Equal in both recordings or in proportion to their batch sizes; where cuDNN has no part in it,
  // also a line of whole bytes through both.
  bool proved(const Evidence& of) const {
    if (!of.matched) return of.growth == BatchGrowth::fixed;
    if (of.bytes == of.other) return true;
    if (of.bytes % base_ == 0 && of.bytes / base_ * other_ == of.other) return true;
    return !has_workspaces_ && (of.bytes - of.other) % (base_ - other_) == 0;
  }
  RecordedProgramLine line(const Evidence& of, View view) const {
    const uint64_t through = of.matched ? (of.bytes - of.other) / (base_ - other_) : 0;
    if (proved(of)) return {of.bytes, through};
    const uint64_t whole = of.bytes / base_;
    switch (view) {
      case View::point:
        if (of.matched) return {of.bytes, through};
        return {of.bytes, of.growth == BatchGrowth::grows ? whole : 0};
      case View::upper_above:
        return {of.bytes, (of.bytes + base_ - 1) / base_};
      case View::lower_below:
        return {of.bytes, whole};
      case View::upper_below:
      case View::lower_above:
        return {of.bytes, 0};
    }
    return {of.bytes, 0};
  }

 private:
  uint64_t base_, other_;  // other_ < base_
  bool has_workspaces_;
};

uint32_t steps_of(const TraceEvents& events) {
  return static_cast<uint32_t>(
      std::count_if(events.events.begin(), events.events.end(), [](const TraceEvent& event) {
        return event.kind == TraceEventKind::mark &&
               event.index == static_cast<uint32_t>(formats::TraceMark::step_ends);
      }));
}

// The first `steps` steps, or all where it has no more; the numbers of storages stay.
TraceEvents first_steps(const TraceEvents& from, uint32_t steps) {
  TraceEvents out = from;
  if (steps_of(from) <= steps) return out;
  uint32_t ended = 0;
  size_t end = 0, storages = 0;
  while (end < from.events.size() && ended < steps) {
    const TraceEvent& event = from.events[end++];
    if (event.kind == TraceEventKind::alloc) ++storages;
    if (event.kind == TraceEventKind::mark &&
        event.index == static_cast<uint32_t>(formats::TraceMark::step_ends))
      ++ended;
  }
  out.events.resize(end);
  out.categories.resize(storages);
  return out;
}

void set_batch(TraceEvents& events, uint64_t batch) {
  const auto number = static_cast<uint32_t>(events.texts.size());
  events.texts.insert(events.texts.end(), {"batch", std::to_string(batch)});
  events.facts.push_back({number, number + 1});
}

// That cuDNN was there widens the upper value (prediction.cc); its requests are in the recording.
void add_convolution(TraceEvents& events) {
  const auto number = static_cast<uint32_t>(events.texts.size());
  events.texts.insert(events.texts.end(), {"conv", ""});
  events.sites.push_back({number, number + 1, number + 1, formats::TracePhase::setup});
  events.calls.push_back({static_cast<uint32_t>(events.sites.size() - 1), 0, 0});
  events.events.push_back({0, static_cast<uint32_t>(events.calls.size() - 1),
                           static_cast<uint32_t>(events.sites.size() - 1), TraceEventKind::call});
}

Result<StepProgram> program_of(const TraceEvents& base, uint64_t batch,
                               const std::vector<Evidence>& evidence, const Sizes& sizes,
                               View view) {
  std::vector<TraceEvents> traces(2, base);
  set_batch(traces[0], batch);
  set_batch(traces[1], 2 * batch);
  size_t storage = 0;
  for (size_t i = 0; i < base.events.size(); ++i) {
    if (base.events[i].kind != TraceEventKind::alloc) continue;
    const RecordedProgramLine line = sizes.line(evidence[storage++], view);
    traces[0].events[i].bytes = line.at_base;
    traces[1].events[i].bytes = line.at_base + line.slope * batch;
  }
  return align(traces);
}

// The most that lives at once of the storages that are not among `matched`.
uint64_t most_of_rest(const TraceEvents& events, const std::vector<bool>& matched) {
  std::vector<uint64_t> bytes(events.storage_count());
  uint64_t now = 0, most = 0;
  for (const TraceEvent& event : events.events) {
    if (event.kind == TraceEventKind::alloc && !matched[event.index])
      most = std::max(most, now += bytes[event.index] = event.bytes);
    if (event.kind == TraceEventKind::free) now -= bytes[event.index];
  }
  return most;
}

Result<std::vector<Part>> parts_of(std::span<const Recorded> recordings) {
  std::vector<Part> out;
  for (const Recorded& from : recordings) {
    const std::optional<uint64_t> batch = parse_uint(from.events->fact("batch"));
    if (!batch || *batch == 0)
      return fail(Code::usage, format("{}: its batch size is not said", from.events->name));
    out.push_back({from.events, from.growth, from.has_workspaces, *batch});
  }
  if (out.empty() || out.size() > 2) return fail(Code::usage, "one recording or two");
  std::sort(out.begin(), out.end(), [](const Part& a, const Part& b) { return a.batch < b.batch; });
  if (out.size() == 2 && out[0].batch == out[1].batch)
    return fail(Code::usage, format("both recordings are of batch size {}", out[0].batch));
  return out;
}

}  // namespace

Result<RecordedPrograms> recorded_programs(std::span<const Recorded> recordings) {
  CUFIT_TRY(parts, parts_of(recordings));
  RecordedPrograms out;
  for (const Part& part : parts) out.batches.push_back(part.batch);
  const Part& base = parts.back();
  out.base = base.batch;
  uint32_t steps = steps_of(*base.events);
  for (const Part& part : parts) steps = std::min(steps, steps_of(*part.events));
  TraceEvents events = first_steps(*base.events, steps);
  std::vector<Evidence> evidence(events.storage_count());
  for (const TraceEvent& event : events.events)
    if (event.kind == TraceEventKind::alloc)
      evidence[event.index] = {event.bytes, 0, base.growth[event.index], false};
  if (parts.size() == 2) {
    const TraceEvents other = first_steps(*parts[0].events, steps);
    const std::vector<uint32_t> pairs = match_recordings(events, base.batch, other, parts[0].batch);
    std::vector<uint64_t> bytes(other.storage_count());
    for (const TraceEvent& event : other.events)
      if (event.kind == TraceEventKind::alloc) bytes[event.index] = event.bytes;
    std::vector<bool> matched(other.storage_count());
    size_t count = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i] == k_unmatched) continue;
      evidence[i].other = bytes[pairs[i]];
      evidence[i].matched = matched[pairs[i]] = true;
      ++count;
    }
    if (count * 100 < pairs.size() * k_least_matched_percent)
      return fail(Code::unsupported,
                  format("the two recordings tell of different programs: only {} of {} allocations "
                         "go together",
                         count, pairs.size()));
    out.only_other = most_of_rest(other, matched);
  }
  if (base.has_workspaces) add_convolution(events);
  const Sizes sizes(base.batch, parts.size() == 2 ? parts[0].batch : 0, base.has_workspaces);
  out.storages = evidence.size();
  out.proved = static_cast<size_t>(std::count_if(
      evidence.begin(), evidence.end(), [&sizes](const Evidence& of) { return sizes.proved(of); }));
  const std::pair<View, StepProgram*> views[] = {{View::point, &out.point},
                                                 {View::upper_above, &out.upper_above},
                                                 {View::upper_below, &out.upper_below},
                                                 {View::lower_above, &out.lower_above},
                                                 {View::lower_below, &out.lower_below}};
  for (const std::pair<View, StepProgram*>& view : views) {
    CUFIT_TRY(made, program_of(events, base.batch, evidence, sizes, view.first));
    *view.second = std::move(made);
  }
  return out;
}

Result<Prediction> predict(const RecordedPrograms& programs, uint64_t batch, const Setup& setup) {
  // In proportion to the batch size, and not less than it was.
  const uint64_t times = std::max<uint64_t>((batch + programs.base - 1) / programs.base, 1);
  const uint64_t more = programs.only_other + programs.missed * times;
  Setup less = setup;
  if (setup.capacity != 0) less.capacity = setup.capacity > more ? setup.capacity - more : 1;
  CUFIT_TRY(out, predict(programs.point, batch, less));
  const bool recorded =
      std::find(programs.batches.begin(), programs.batches.end(), batch) != programs.batches.end();
  out.traced = recorded;
  CUFIT_TRY(upper, predict(batch >= programs.base ? programs.upper_above : programs.upper_below,
                           batch, less));
  out.peak_allocated_upper = std::max(out.peak_allocated_upper, upper.peak_allocated_upper);
  out.peak_reserved_upper = std::max(out.peak_reserved_upper, upper.peak_reserved_upper) + more;
  out.alloc_retries = std::max(out.alloc_retries, upper.alloc_retries);
  if (!out.upper_oom) out.upper_oom = upper.oom ? upper.oom : upper.upper_oom;
  return out;
}

Result<uint64_t> compare_with_recording(RecordedPrograms& programs, uint64_t peak_reserved,
                                        const Setup& setup) {
  CUFIT_TRY(again, predict(programs.point, programs.base, setup));
  programs.missed = peak_reserved > again.peak_reserved ? peak_reserved - again.peak_reserved : 0;
  return again.peak_reserved;
}

Result<uint64_t> lowest_reserved(const RecordedPrograms& programs, uint64_t batch,
                                 const Setup& setup) {
  CUFIT_TRY(low, predict(batch >= programs.base ? programs.lower_above : programs.lower_below,
                         batch, setup));
  return low.peak_allocated;
}

std::vector<CurvePoint> curve(const RecordedPrograms& programs, std::span<const uint64_t> batches,
                              const Setup& setup) {
  std::vector<CurvePoint> out;
  for (const uint64_t batch : batches)
    if (const Result<Prediction> got = predict(programs, batch, setup))
      out.push_back(
          {batch, got->peak_allocated, got->peak_reserved, got->peak_reserved_upper, got->fits()});
  return out;
}

LargestBatch largest_batch(const RecordedPrograms& programs, const Setup& setup) {
  LargestBatch out;
  const auto fits = [&](uint64_t batch) {
    const Result<Prediction> got = predict(programs, batch, setup);
    return got && got->fits();
  };
  const uint64_t highest = programs.base * k_furthest;
  uint64_t good = 0, bad = 0;  // 0: none known
  for (uint64_t batch = programs.base; bad == 0; batch *= 2) {
    batch = std::min(batch, highest);
    (fits(batch) ? good : bad) = batch;
    if (good == highest) break;
  }
  while (bad > good + 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  out.batch = good;
  out.unbounded = good == highest;
  return out;
}

}  // namespace cufit::fit
