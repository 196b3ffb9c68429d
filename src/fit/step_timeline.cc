// SPDX-License-Identifier: Apache-2.0
#include "fit/step_timeline.h"

#include <algorithm>
#include <array>

#include "fit/replayed_steps.h"

namespace cufit::fit {
namespace {

constexpr size_t k_phases = 6;

struct Place {
  uint32_t step = 0;
  TracePhase phase = TracePhase::setup;
};

// Where each event lies; a free belongs to what was asked for last.
std::vector<Place> places_of(const StepProgram& program) {
  std::vector<Place> out;
  out.reserve(program.events.size());
  Place now;
  for (const StepEvent& event : program.events) {
    if (event.kind == StepEventKind::mark &&
        event.index == static_cast<uint32_t>(TraceMark::step_begins))
      now = {now.step + 1, TracePhase::forward};
    if (event.kind == StepEventKind::alloc || event.kind == StepEventKind::call)
      now.phase = program.sites[event.site].phase;
    out.push_back(now);
  }
  return out;
}

// What most of the events of one point belong to.
Place place_of(const std::vector<Place>& places, size_t first, size_t end) {
  std::array<size_t, k_phases> counts{};
  for (size_t i = first; i < end; ++i) ++counts[static_cast<size_t>(places[i].phase)];
  Place out = places[end - 1];
  out.phase =
      static_cast<TracePhase>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  return out;
}

}  // namespace

Result<StepTimeline> step_timeline(const StepProgram& whole, uint64_t batch, const Setup& setup,
                                   uint32_t most_points) {
  const StepProgram* program = whole.at(batch);
  if (program == nullptr)
    return fail(Code::unsupported, "the traces do not answer for this batch size");
  const knowledge::Knowledge& knowledge =
      setup.knowledge != nullptr ? *setup.knowledge : knowledge::Knowledge::builtin();
  CUFIT_TRY(sizes, sizes_at(*program, batch));
  const std::vector<Workspace> workspaces =
      workspaces_at(*program, sizes, setup.libraries, knowledge);
  std::vector<MemoryAt> series;
  (void)replay_steps({*program, sizes, workspaces}, setup, Estimate::point,
                     memory::SyntheticMemory::Order::driver, &series);
  const std::vector<Place> places = places_of(*program);
  StepTimeline out;
  out.events = static_cast<uint32_t>(series.size());
  const size_t count = std::max<uint32_t>(most_points, 1);
  const size_t per_point = std::max<size_t>((series.size() + count - 1) / count, 1);
  out.events_per_point = static_cast<uint32_t>(per_point);
  for (size_t first = 0; first < series.size(); first += per_point) {
    const size_t end = std::min(first + per_point, series.size());
    TimelinePoint point;
    for (size_t i = first; i < end; ++i) {
      point.allocated = std::max(point.allocated, series[i].allocated);
      point.reserved = std::max(point.reserved, series[i].reserved);
    }
    const auto number = static_cast<uint32_t>(out.points.size());
    out.points.push_back(point);
    if (point.allocated > out.points[out.peak].allocated) out.peak = number;
    const Place place = place_of(places, first, end);
    if (!out.ranges.empty() && out.ranges.back().step == place.step &&
        out.ranges.back().phase == place.phase)
      out.ranges.back().end = number + 1;
    else
      out.ranges.push_back({number, number + 1, place.step, place.phase});
  }
  return out;
}

}  // namespace cufit::fit
