// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/call_results.h"

#include <algorithm>

#include "fit/workspaces/workspaces.h"

namespace cufit::fit {

bool CallResults::is_of_library(size_t event) const {
  const StepEvent& at = program_.events[event];
  return at.kind == StepEventKind::call &&
         is_operator(program_.text(program_.sites[program_.calls[at.index].site].op));
}

uint32_t CallResults::event_of(size_t call) {
  const std::vector<StepEvent>& events = program_.events;
  Run& run = library_;
  if (call < run.first || call >= run.end) {
    run.first = call;
    while (run.first > 0 && is_of_library(run.first - 1)) --run.first;
    run.end = call + 1;
    while (run.end < events.size() && is_of_library(run.end)) ++run.end;
    run.results_end = run.end;
    // No call has more than one of its own.
    const size_t most = std::min(events.size(), run.end + (run.end - run.first));
    while (run.results_end < most && events[run.results_end].kind == StepEventKind::alloc)
      ++run.results_end;
  }
  return static_cast<uint32_t>(std::min(run.end + (call - run.first), run.results_end - 1));
}

uint32_t CallResults::after_all(size_t call, size_t before) {
  const std::vector<StepEvent>& events = program_.events;
  Run& run = calls_;
  if (call < run.first || call >= run.end) {
    run.first = call;
    run.end = call + 1;
    while (run.end < events.size() && events[run.end].kind == StepEventKind::call) ++run.end;
    run.results_end = run.end;
    while (run.results_end < events.size() &&
           events[run.results_end].kind == StepEventKind::alloc &&
           events[run.results_end].site == events[run.end].site)
      ++run.results_end;
  }
  return static_cast<uint32_t>(run.results_end - run.end > before ? run.results_end - 1 - before
                                                                  : call);
}

}  // namespace cufit::fit
