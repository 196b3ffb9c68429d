// SPDX-License-Identifier: Apache-2.0
// zero_grad(set_to_none=True) seen in the trace alone: gradients have the sizes of parameters, the
// backward pass makes them one by one, last parameter first, and all of them go in one run of
// frees, first parameter first. What else has sizes of parameters does not look like that:
// temporaries of a foreach optimizer are made in one run, and so are the parameters themselves.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "memory/analysis/step_marks.h"

namespace cufit::analysis {
namespace {

using memory::Action;
using memory::Snapshot;
using memory::Trace;

constexpr size_t k_min_gradients = 6;   // fewer prove nothing
constexpr double k_min_backward = 0.6;  // of the pairs are in backward order
constexpr size_t k_max_chain = 4;       // gradients of one module, made one after another
constexpr size_t k_max_of_one = 4;      // a trace this many times as long has more than one step
constexpr uint32_t k_no_row = UINT32_MAX;

bool is_free(Action action) {
  return action == Action::free_requested || action == Action::free_completed;
}

// A segment that goes back (empty_cache) ends a run as well as an allocation, and so does a request
// that fails: what is freed after it, the exception frees.
bool ends_run(Action action) {
  return action == Action::alloc || action == Action::oom || action == Action::segment_free ||
         action == Action::segment_unmap;
}

// One run of frees and the rows that may be gradients, in the order of their frees.
struct FreeRun {
  std::vector<uint32_t> rows;
};

class Finder {
 public:
  Finder(const Snapshot& snapshot, const Trace& trace, const Lifetimes& lifetimes)
      : snapshot_(snapshot), trace_(trace), rows_(lifetimes.rows) {
    for (const Lifetime& row : rows_)
      if (is_kept(row, lifetimes))
        kept_since_.try_emplace(row.requested_bytes,
                                row.alloc_event == k_before ? 0 : row.alloc_event);
    work_end_ = lifetimes.work_end;
    freed_at_.assign(lifetimes.events, k_no_row);
    for (uint32_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].free_requested < freed_at_.size()) freed_at_[rows_[i].free_requested] = i;
  }

  std::vector<StepMark> marks() {
    const std::vector<FreeRun> runs = all_runs();
    const size_t typical = typical_count(runs);
    if (typical == 0) return {};
    std::vector<StepMark> out;
    for (const FreeRun& run : runs) {
      if (!is_like(run.rows.size(), typical)) continue;
      StepMark mark;
      mark.kind = StepMarkKind::zero_grad;
      mark.begin = rows_[run.rows.front()].free_requested;
      mark.end = rows_[run.rows.back()].free_requested + 1;
      out.push_back(mark);
    }
    // One is enough for a run that died early, not for one that went on without a second: a
    // program that lived may have freed a cache of such sizes once.
    const bool lived = work_end_ >= freed_at_.size() ||
                       snapshot_.events[trace_.first + work_end_].action != Action::oom;
    const bool goes_on = out.size() == 1 && (lived || freed_at_.size() / k_max_of_one > out[0].end);
    if (goes_on) out.clear();
    return out;
  }

 private:
  static bool is_like(size_t count, size_t typical) {
    return count * 5 >= typical * 4 && count * 4 <= typical * 5;
  }

  // The count of gradients that explains most frees. Frees at the end may be the last zero_grad as
  // well as the program's end, so they have no say in it.
  size_t typical_count(const std::vector<FreeRun>& runs) const {
    std::map<size_t, size_t> by_count;
    for (const FreeRun& run : runs)
      if (rows_[run.rows.front()].free_requested < work_end_) ++by_count[run.rows.size()];
    size_t best = 0, best_total = 0;
    for (const auto& [count, times] : by_count) {
      size_t total = 0;
      for (const auto& [other, other_times] : by_count)
        if (is_like(other, count)) total += other * other_times;
      if (total < best_total) continue;
      best = count;
      best_total = total;
    }
    return best;
  }

  std::vector<FreeRun> all_runs() {
    std::vector<FreeRun> runs;
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i <= freed_at_.size(); ++i) {
      const bool ends =
          i == freed_at_.size() || ends_run(snapshot_.events[trace_.first + i].action);
      if (!ends) {
        if (freed_at_[i] != k_no_row) rows.push_back(freed_at_[i]);
        continue;
      }
      FreeRun run{gradients_among(rows)};
      if (run.rows.size() >= k_min_gradients && is_backward(run.rows)) runs.push_back(run);
      rows.clear();
    }
    return runs;
  }

  // Allocated directly after one another. What lived before the trace: not known, so not.
  bool adjoin(uint32_t row, uint32_t next) const {
    if (rows_[row].alloc_event == k_before) return false;
    for (uint32_t at = rows_[row].alloc_event + 1; at < rows_[next].alloc_event; ++at)
      if (is_free(snapshot_.events[trace_.first + at].action)) return false;
    return true;
  }

  // Something of this size was there before and stays: the parameter, if this is its gradient.
  bool has_parameter(const Lifetime& row) const {
    const auto kept = kept_since_.find(row.requested_bytes);
    return kept != kept_since_.end() &&
           (row.alloc_event == k_before || kept->second < row.alloc_event);
  }

  // Of the rows that one run of frees frees.
  std::vector<uint32_t> gradients_among(const std::vector<uint32_t>& rows) const {
    std::vector<uint32_t> found;
    if (rows.size() < k_min_gradients) return found;
    std::vector<uint32_t> sorted = rows;
    std::sort(sorted.begin(), sorted.end());
    std::unordered_set<uint32_t> candidates;
    for (size_t i = 0; i < sorted.size();) {
      size_t end = i + 1;
      while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1 &&
             adjoin(sorted[end - 1], sorted[end]))
        ++end;
      const bool chain = end - i > k_max_chain;
      for (; i < end; ++i)
        if (!chain && has_parameter(rows_[sorted[i]])) candidates.insert(sorted[i]);
    }
    for (const uint32_t row : rows)
      if (candidates.count(row) != 0) found.push_back(row);
    return found;
  }

  bool is_backward(const std::vector<uint32_t>& rows) const {
    const size_t apart = std::max<size_t>(1, rows.size() / 4);
    size_t backward = 0;
    for (size_t i = 0; i + apart < rows.size(); ++i) {
      const uint32_t here = rows_[rows[i]].alloc_event, later = rows_[rows[i + apart]].alloc_event;
      // Of those that lived before the trace the order is not known; they were made before others.
      backward += here == k_before ? later == k_before : (later == k_before || here > later);
    }
    return static_cast<double>(backward) >=
           k_min_backward * static_cast<double>(rows.size() - apart);
  }

  const Snapshot& snapshot_;
  const Trace& trace_;
  const std::vector<Lifetime>& rows_;
  std::unordered_map<uint64_t, uint32_t> kept_since_;  // size -> event
  uint32_t work_end_ = 0;
  std::vector<uint32_t> freed_at_;  // by event: the row
};

}  // namespace

std::vector<StepMark> marks_of_frees(const Snapshot& snapshot, uint32_t device,
                                     const Lifetimes& lifetimes) {
  return Finder(snapshot, snapshot.traces[device], lifetimes).marks();
}

}  // namespace cufit::analysis
