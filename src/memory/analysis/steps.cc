// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/steps.h"

#include <algorithm>

#include "memory/analysis/step_marks.h"

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::Snapshot;
using memory::Trace;

// So few allocations between two marks are bookkeeping (a scaler's scale, a clipped norm), no
// forward pass.
constexpr uint32_t k_bookkeeping_allocs = 16;

constexpr uint32_t k_kept_of_forward = 4;

class StepFinder {
 public:
  StepFinder(const Snapshot& snapshot, uint32_t device, const Lifetimes& lifetimes)
      : snapshot_(snapshot),
        trace_(snapshot.traces[device]),
        device_(device),
        lifetimes_(lifetimes),
        roles_(snapshot) {}

  Steps find() {
    if (!believe(marks_of_annotations(snapshot_, device_), StepsKnownBy::annotations) &&
        !believe(marks_of_frames(snapshot_, device_, roles_), StepsKnownBy::frames) &&
        !believe(marks_of_frees(snapshot_, device_, lifetimes_), StepsKnownBy::frees))
      look_for_first_forward();
    return out_;
  }

 private:
  bool believe(std::vector<StepMark> marks, StepsKnownBy witness) {
    if (marks.empty()) return false;
    // A range that an out-of-memory ended is closed by the unwinding, not by its work.
    for (StepMark& mark : marks)
      if (!mark.before_trace && dies_at(lifetimes_.work_end) && mark.begin <= lifetimes_.work_end &&
          mark.end > lifetimes_.work_end)
        mark.open = true;
    out_.marks = marks;
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

  // A run that died before its first optimizer step: modules were called, and much of what they
  // made still lives.
  void look_for_first_forward() {
    if (!dies_at(lifetimes_.work_end) || lifetimes_.initial != 0) return;
    uint64_t made = 0, kept = 0;
    uint32_t blocks = 0;
    std::optional<uint32_t> begin;
    for (const Lifetime& row : lifetimes_.rows) {
      if (roles_[row.stack] != StackRole::module_call) continue;
      if (!begin) begin = row.alloc_event;
      made += row.block_bytes;
      if (!is_kept(row, lifetimes_)) continue;
      kept += row.block_bytes;
      ++blocks;
    }
    // Without a graph a layer's results go when the next layer is done.
    if (!begin || kept * 5 < made || blocks < k_kept_of_forward) return;
    out_.known_by = StepsKnownBy::frames;
    out_.begins.push_back(std::min(*begin, model_is_there().value_or(*begin)));
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
    if (const std::optional<uint32_t> moved = model_is_there(); moved && from_start)
      first_mark = std::min(first_mark, *moved);
    const uint32_t first_end = ends.empty() ? lifetimes_.events : ends[0];
    const uint32_t second_end = ends.size() > 1 ? ends[1] : lifetimes_.work_end + 1;
    out_.begins.push_back(from_start ? end_of_setup(std::min(first_mark, first_end), second_end)
                                     : 0);
    for (const uint32_t end : ends)
      if (holds_alloc(end)) out_.begins.push_back(end);
  }

  bool dies_at(uint32_t event) const {
    return event < lifetimes_.events && action(event) == Action::oom;
  }

  // After the last step there is only a step if something is still asked for.
  bool holds_alloc(uint32_t from) const {
    for (uint32_t i = from; i < lifetimes_.events; ++i)
      if (action(i) == Action::alloc || action(i) == Action::oom) return true;
    return false;
  }

  // By the stacks: after the last parameter that moves before a module is called.
  std::optional<uint32_t> model_is_there() const {
    std::optional<uint32_t> there;
    for (const Lifetime& row : lifetimes_.rows) {
      const StackRole role = roles_[row.stack];
      if (role == StackRole::module_call) break;
      if (role == StackRole::module_move) there = row.alloc_event + 1;
    }
    return there;
  }

  // While the model goes to the device, what is allocated stays, or it takes the place of what is
  // freed right after (a conversion to another dtype or layout). The first allocation before
  // `until` that is neither begins step 0.
  uint32_t end_of_setup(uint32_t until, uint32_t stays_until) const {
    const std::vector<Lifetime>& rows = lifetimes_.rows;
    uint32_t end = 0;
    for (size_t i = 0; i < rows.size() && rows[i].alloc_event < until; ++i) {
      const Lifetime& row = rows[i];
      if (row.free_requested < stays_until && !is_converted(i, stays_until)) return row.alloc_event;
      end = row.alloc_event + 1;
    }
    return std::min(end, until);
  }

  bool is_converted(size_t row, uint32_t stays_until) const {
    const Lifetime& old = lifetimes_.rows[row];
    uint32_t at = old.free_requested;
    while (at > 0 && action(at) != Action::alloc) --at;
    if (action(at) != Action::alloc || at <= old.alloc_event) return false;
    const auto heir =
        std::lower_bound(lifetimes_.rows.begin() + lifetimes_.initial, lifetimes_.rows.end(), at,
                         [](const Lifetime& r, uint32_t event) { return r.alloc_event < event; });
    if (heir == lifetimes_.rows.end() || heir->free_requested < stays_until) return false;
    const uint64_t larger = std::max(heir->requested_bytes, old.requested_bytes);
    const uint64_t smaller = std::min(heir->requested_bytes, old.requested_bytes);
    return smaller > 0 && (larger == smaller || larger == 2 * smaller || larger == 4 * smaller);
  }

  Action action(uint32_t event) const { return snapshot_.events[trace_.first + event].action; }

  const Snapshot& snapshot_;
  const Trace& trace_;
  uint32_t device_;
  const Lifetimes& lifetimes_;
  const StackRoles roles_;
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
