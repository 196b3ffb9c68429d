// SPDX-License-Identifier: Apache-2.0
#include "analysis/steps.h"

#include <algorithm>

#include "analysis/step_marks.h"

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::Snapshot;
using memory::Trace;

// So few allocations between two marks are bookkeeping (a scaler's scale, a clipped norm), no
// forward pass.
constexpr uint32_t k_bookkeeping_allocs = 16;

class StepFinder {
 public:
  StepFinder(const Snapshot& snapshot, uint32_t device, const Lifetimes& lifetimes)
      : snapshot_(snapshot),
        trace_(snapshot.traces[device]),
        device_(device),
        lifetimes_(lifetimes) {}

  Steps find() {
    if (!believe(marks_of_annotations(snapshot_, device_), StepsKnownBy::annotations) &&
        !believe(marks_of_frames(snapshot_, device_), StepsKnownBy::frames))
      believe(marks_of_frees(snapshot_, device_, lifetimes_), StepsKnownBy::frees);
    return out_;
  }

 private:
  bool believe(std::vector<StepMark> marks, StepsKnownBy witness) {
    if (marks.empty()) return false;
    const bool has_optimizer = std::any_of(marks.begin(), marks.end(), [](const StepMark& mark) {
      return mark.kind == StepMarkKind::optimizer;
    });
    // Without one, clearing the gradients is what tells steps apart.
    if (!has_optimizer)
      for (StepMark& mark : marks) mark.kind = StepMarkKind::optimizer;
    out_.known_by = witness;
    std::vector<uint32_t> ends;
    uint32_t setup_ends = UINT32_MAX;
    for (size_t i = 0; i < marks.size(); ++i) {
      if (marks[i].kind != StepMarkKind::optimizer) continue;
      size_t last = i;
      while (last + 1 < marks.size() && belongs(marks, last)) ++last;
      note_end(marks[i], marks[last], ends);
      setup_ends = std::min(setup_ends, marks[i].begin);
      i = last;
    }
    out_.finished = static_cast<uint32_t>(ends.size());
    begin_steps(ends, setup_ends);
    return true;
  }

  void note_end(const StepMark& first, const StepMark& last, std::vector<uint32_t>& ends) {
    if (last.before_trace)
      ++out_.first;
    else if (!first.open && !last.open)
      ends.push_back(last.end);
  }

  // Whether the mark after `at` belongs to the same step: a zero_grad that follows, or another
  // optimizer's step with nothing but bookkeeping between.
  bool belongs(const std::vector<StepMark>& marks, size_t at) const {
    const StepMark &here = marks[at], &next = marks[at + 1];
    if (next.before_trace != here.before_trace) return false;
    if (next.before_trace) return next.kind == StepMarkKind::zero_grad;
    const uint32_t allocs = allocs_between(here.end, next.begin);
    if (next.kind == StepMarkKind::zero_grad) return allocs <= k_bookkeeping_allocs;
    if (here.kind == StepMarkKind::zero_grad) return allocs == 0;
    return next.name != here.name && allocs <= k_bookkeeping_allocs;
  }

  uint32_t allocs_between(uint32_t begin, uint32_t end) const {
    uint32_t allocs = 0;
    for (uint32_t i = begin; i < end && allocs <= k_bookkeeping_allocs; ++i)
      allocs += action(i) == Action::alloc ? 1 : 0;
    return allocs;
  }

  void begin_steps(const std::vector<uint32_t>& ends, uint32_t first_mark) {
    const bool from_start = lifetimes_.initial == 0 && out_.first == 0;
    const uint32_t first_end = ends.empty() ? lifetimes_.events : ends[0];
    const uint32_t second_end = ends.size() > 1 ? ends[1] : lifetimes_.events;
    out_.begins.push_back(from_start ? end_of_setup(std::min(first_mark, first_end), second_end)
                                     : 0);
    for (const uint32_t end : ends)
      if (holds_alloc(end)) out_.begins.push_back(end);
  }

  // After the last step there is only a step if something is still asked for.
  bool holds_alloc(uint32_t from) const {
    for (uint32_t i = from; i < lifetimes_.events; ++i)
      if (action(i) == Action::alloc || action(i) == Action::oom) return true;
    return false;
  }

  // While the model goes to the device, what is allocated stays, or it takes the place of what is
  // freed right after (a conversion to another dtype or layout). The first allocation before
  // `until` that is neither begins step 0.
  uint32_t end_of_setup(uint32_t until, uint32_t stays_until) const {
    const std::vector<Lifetime>& rows = lifetimes_.rows;
    uint32_t end = 0;
    for (size_t i = 0; i < rows.size() && rows[i].alloc_event < until; ++i) {
      const Lifetime& row = rows[i];
      if (row.free_requested < stays_until && !is_converted(i)) return row.alloc_event;
      end = row.alloc_event + 1;
    }
    return std::min(end, until);
  }

  bool is_converted(size_t row) const {
    const Lifetime& old = lifetimes_.rows[row];
    uint32_t at = old.free_requested;
    while (at > 0 && action(at) != Action::alloc) --at;
    if (action(at) != Action::alloc || at <= old.alloc_event) return false;
    const auto heir =
        std::lower_bound(lifetimes_.rows.begin() + lifetimes_.initial, lifetimes_.rows.end(), at,
                         [](const Lifetime& r, uint32_t event) { return r.alloc_event < event; });
    if (heir == lifetimes_.rows.end() || heir->free_requested <= old.free_requested) return false;
    const uint64_t larger = std::max(heir->requested_bytes, old.requested_bytes);
    const uint64_t smaller = std::min(heir->requested_bytes, old.requested_bytes);
    return smaller > 0 && (larger == smaller || larger == 2 * smaller || larger == 4 * smaller);
  }

  Action action(uint32_t event) const { return snapshot_.events[trace_.first + event].action; }

  const Snapshot& snapshot_;
  const Trace& trace_;
  uint32_t device_;
  const Lifetimes& lifetimes_;
  Steps out_;
};

}  // namespace

const char* to_string(StepsKnownBy known_by) {
  switch (known_by) {
    case StepsKnownBy::annotations:
      return "annotations";
    case StepsKnownBy::frames:
      return "frames";
    case StepsKnownBy::frees:
      return "frees";
    case StepsKnownBy::unknown:
      break;
  }
  return "unknown";
}

std::optional<uint32_t> Steps::at(uint32_t event) const {
  if (!known() || begins.empty() || event < begins.front()) return std::nullopt;
  const auto after = std::upper_bound(begins.begin(), begins.end(), event);
  return first + static_cast<uint32_t>(after - begins.begin()) - 1;
}

Steps steps_of(const Snapshot& snapshot, uint32_t device, const Lifetimes& lifetimes) {
  return StepFinder(snapshot, device, lifetimes).find();
}

}  // namespace cufit::analysis
