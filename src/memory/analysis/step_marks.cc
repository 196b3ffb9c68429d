// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/step_marks.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::Annotation;
using memory::Snapshot;
using memory::Trace;
using memory::TraceEvent;

// "Optimizer.step#AdamW.step" and "Optimizer.zero_grad#AdamW.zero_grad" are the names that
// torch/optim/optimizer.py gives to its profiler ranges.
std::optional<StepMarkKind> kind_of(std::string_view name) {
  if (name.rfind("Optimizer.step#", 0) == 0) return StepMarkKind::optimizer;
  if (name.rfind("Optimizer.zero_grad#", 0) == 0) return StepMarkKind::zero_grad;
  return std::nullopt;
}

// Turns times into events; both come in order.
class EventClock {
 public:
  EventClock(const Snapshot& snapshot, const Trace& trace) : snapshot_(snapshot), trace_(trace) {}
  // The first event at or after `time_us`, which never goes back.
  uint32_t event_at(uint64_t time_us) {
    while (at_ < trace_.count) {
      const uint64_t time = snapshot_.events[trace_.first + at_].time_us;
      if (time != memory::k_absent && time >= time_us) break;
      ++at_;
    }
    return static_cast<uint32_t>(at_);
  }

 private:
  const Snapshot& snapshot_;
  const Trace& trace_;
  size_t at_ = 0;
};

bool has_time(const Snapshot& snapshot, const Trace& trace) {
  return trace.count > 0 && snapshot.events[trace.first].time_us != memory::k_absent;
}

std::vector<Annotation> optimizer_annotations(const Snapshot& snapshot, uint32_t device) {
  std::vector<Annotation> own, all;
  for (const Annotation& annotation : snapshot.annotations) {
    if (!kind_of(snapshot.text(annotation.name)) || annotation.time_us == memory::k_absent)
      continue;
    all.push_back(annotation);
    if (annotation.device == device) own.push_back(annotation);
  }
  // A model over several devices has one optimizer, and it steps with one of them current.
  std::vector<Annotation>& found = own.empty() ? all : own;
  std::stable_sort(found.begin(), found.end(),
                   [](const Annotation& a, const Annotation& b) { return a.time_us < b.time_us; });
  return std::move(found);
}

}  // namespace

std::vector<StepMark> marks_of_annotations(const Snapshot& snapshot, uint32_t device) {
  std::vector<StepMark> marks;
  const Trace& trace = snapshot.traces[device];
  if (!has_time(snapshot, trace)) return marks;
  const uint64_t first_time = snapshot.events[trace.first].time_us;
  EventClock clock(snapshot, trace);
  for (const Annotation& annotation : optimizer_annotations(snapshot, device)) {
    const StepMarkKind kind = *kind_of(snapshot.text(annotation.name));
    const uint32_t event = clock.event_at(annotation.time_us);
    if (annotation.start) {
      StepMark mark;
      mark.begin = event;
      mark.end = static_cast<uint32_t>(trace.count);
      mark.name = annotation.name;
      mark.kind = kind;
      mark.open = true;
      marks.push_back(mark);
      continue;
    }
    // Ranges of one optimizer nest (a wrapper around another one); the innermost open one ends.
    const auto opened = std::find_if(marks.rbegin(), marks.rend(), [&](const StepMark& mark) {
      return mark.open && mark.name == annotation.name;
    });
    if (opened == marks.rend()) continue;
    opened->open = false;
    opened->end = event;
    opened->before_trace = annotation.time_us < first_time;
  }
  return marks;
}

std::vector<StepMark> marks_of_frames(const Snapshot& snapshot, uint32_t device,
                                      const StackRoles& roles) {
  std::vector<StepMark> marks;
  const Trace& trace = snapshot.traces[device];
  uint32_t allocs_since = 0;  // the last mark's end
  for (uint32_t i = 0; i < trace.count; ++i) {
    const TraceEvent& event = snapshot.events[trace.first + i];
    const StackRole here = roles[event.stack];
    if (here != StackRole::optimizer && here != StackRole::zero_grad) {
      allocs_since += event.action == Action::alloc ? 1 : 0;
      continue;
    }
    const StepMarkKind kind =
        here == StackRole::optimizer ? StepMarkKind::optimizer : StepMarkKind::zero_grad;
    if (marks.empty() || marks.back().kind != kind || allocs_since > 0) {
      StepMark mark;
      mark.begin = i;
      mark.kind = kind;
      marks.push_back(mark);
    }
    marks.back().end = i + 1;
    allocs_since = 0;
  }
  return marks;
}

}  // namespace cufit::analysis
