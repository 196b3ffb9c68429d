// SPDX-License-Identifier: Apache-2.0
#include "fit/traced_steps.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "fit/trace_parts.h"

namespace cufit::fit {
namespace {

using formats::TraceCall;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceMark;

constexpr std::string_view k_given = "batch_given", k_to_come = "batch_to_come";
constexpr size_t k_least_samples = 4, k_least_cubic_samples = 8;
constexpr size_t k_most_samples = 64, k_most_steps = 512;
constexpr size_t k_most_columns = 24, k_most_sizes = 1024;  // of a step's batches
constexpr size_t k_most_events = 400000;                    // of all steps that are added
// A size may grow by the square of k_furthest_shape: far below what the reader lets live.
constexpr uint64_t k_most_step_bytes = uint64_t{1} << 42;
// Of a step's bytes so many per mille may follow nothing.
constexpr double k_unclear_per_mille = 20;

}  // namespace

TracedSteps::TracedSteps(const TraceEvents& trace) : trace_(trace) {
  uint32_t storages = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == TraceEventKind::alloc) ++storages;
    if (event.kind == TraceEventKind::call) add_batch(trace.calls[event.index]);
    if (is_mark(event, TraceMark::after_steps) || is_mark(event, TraceMark::micro_batch))
      begins_ = {}, behind_ = true;
    if (is_mark(event, TraceMark::step_begins)) {
      begins_ = {i + 1, i + 1, storages, {}};
    } else if (is_mark(event, TraceMark::step_ends) && begins_.first != 0) {
      begins_.last = i;
      (behind_ ? steps_behind_ : steps_).push_back(std::move(begins_));
      begins_ = {};
    } else if (begins_.first != 0 && event.kind != TraceEventKind::free) {
      begins_.acts.push_back(i);
    }
  }
}

const std::vector<Shape>& TracedSteps::shapes() {
  if (!shapes_.empty() || steps_.size() < k_least_samples + 1 || given_.empty()) return shapes_;
  const size_t each = given_.size() / steps_.size();
  const size_t sizes = given_.front().size();
  // More may be fetched than was trained on, but less than a step's.
  if (each == 0 || given_.size() - each * steps_.size() > 2 || sizes * each > k_most_sizes)
    return shapes_;
  std::vector<Shape> all = given_;
  all.insert(all.end(), later_.begin(), later_.end());
  std::vector<Shape> shapes;
  for (size_t i = 0; i + each <= all.size() && shapes.size() < steps_.size() + k_most_steps;
       i += each) {
    Shape shape;
    for (size_t j = i; j < i + each; ++j) {
      if (all[j].size() != sizes) return shapes_;
      shape.insert(shape.end(), all[j].begin(), all[j].end());
    }
    shapes.push_back(std::move(shape));
  }
  if (choose_step() && look_at_frees()) shapes_ = std::move(shapes);
  return shapes_;
}

bool TracedSteps::learn() {
  TracedSteps* const alone[] = {this};
  if (shapes().empty() || !learn_from(alone)) return false;
  // In the order of the batches: traced steps behind the repeated one are repeated, too.
  std::vector<Shape> more;
  for (size_t i = step_ + 1; i < shapes_.size(); ++i)
    if (columns_->covers(shapes_[i])) more.push_back(shapes_[i]);
  more_ = std::move(more);
  return more_.size() >= steps_.size() - step_;
}

bool TracedSteps::learn_from(std::span<TracedSteps* const> peers) {
  samples_.clear();
  std::vector<Shape> seen;
  for (TracedSteps* peer : peers) {
    const std::vector<size_t>&mine = steps_[step_].acts, &other = peer->steps_[peer->step_].acts;
    if (mine.size() != other.size()) return false;
    for (size_t i = 0; i < mine.size(); ++i)
      if (!same_act(mine[i], *peer, other[i])) return false;
    for (const size_t step : peer->alike_) {
      samples_.push_back({peer, step});
      seen.push_back(peer->shapes_[step]);
    }
  }
  const bool cubic = peers.size() > 1 || samples_.size() >= k_least_cubic_samples;
  columns_.emplace(seen, sizes_of_batch(), k_most_columns, cubic);
  rules_.clear();
  exact_rules_.clear();
  rules_of_acts_.assign(steps_[step_].acts.size(), {});
  nearest_ = SIZE_MAX;
  return columns_->count() != 0 && columns_->count() <= k_most_columns && follows();
}

void TracedSteps::set_shapes(std::vector<Shape> shapes) {
  more_.assign(shapes.begin() + static_cast<std::ptrdiff_t>(steps_.size()), shapes.end());
  shapes.resize(steps_.size());
  wanted_ = std::move(shapes);
}

size_t TracedSteps::more() const {
  return std::min(more_.size(), k_most_events / std::max<size_t>(1, length()));
}

TraceEvents TracedSteps::extended(size_t count) {
  TraceEvents out = trace_;
  out.events.clear();
  out.calls.clear();
  out.categories.clear();
  const std::map<size_t, Act> other = acts_at_other_shapes();
  const size_t end = count == 0 ? SIZE_MAX : steps_[step_].last + 1;
  const uint32_t at = count == 0 ? UINT32_MAX : steps_[step_].storages;
  const auto made = count == 0 ? 0 : static_cast<uint32_t>(made_.size());
  const auto added = made * static_cast<uint32_t>(count);
  for (size_t i = 0; i < trace_.events.size(); ++i) {
    if (i == end)
      for (size_t step = 0; step < count; ++step) add_step(more_[step], out);
    TraceEvent event = trace_.events[i];
    switch (event.kind) {
      case TraceEventKind::call:
        if (is_told(trace_.calls[event.index])) continue;
        if (const auto act = other.find(i); act != other.end()) {
          event.index = add_call(trace_.calls[event.index], act->second, out);
          break;
        }
        out.calls.push_back(trace_.calls[event.index]);
        event.index = static_cast<uint32_t>(out.calls.size() - 1);
        break;
      case TraceEventKind::alloc:
        if (const auto act = other.find(i); act != other.end()) event.bytes = bytes_of(act->second);
        out.categories.push_back(trace_.categories[event.index]);
        if (i >= end) event.index += added;
        break;
      case TraceEventKind::free:
        if (i >= end && event.index >= at) event.index += added;
        break;
      case TraceEventKind::mark:
        break;
    }
    out.events.push_back(event);
  }
  if (end == trace_.events.size())  // nothing follows the step
    for (size_t step = 0; step < count; ++step) add_step(more_[step], out);
  return out;
}

std::string_view TracedSteps::op_of(const TraceCall& call) const {
  return trace_.texts[trace_.sites[call.site].op];
}

bool TracedSteps::is_told(const TraceCall& call) const {
  const std::string_view op = op_of(call);
  return op == k_given || op == k_to_come;
}

void TracedSteps::add_batch(const TraceCall& call) {
  if (!is_told(call)) return;
  const auto numbers = trace_.numbers_of(call);
  (op_of(call) == k_given ? given_ : later_).emplace_back(numbers.begin(), numbers.end());
}

bool TracedSteps::same_act(size_t event, const TracedSteps& other, size_t of_other) const {
  const TraceEvent &x = trace_.events[event], &y = other.trace_.events[of_other];
  if (x.kind != y.kind) return false;
  if (x.kind == TraceEventKind::mark) return x.index == y.index;
  if (x.kind == TraceEventKind::call &&
      trace_.calls[x.index].count != other.trace_.calls[y.index].count)
    return false;
  if (&other == this) return x.site == y.site;
  return same_site(trace_, x.site, other.trace_, y.site);
}

// Whether two steps do the same; when they free what they made may differ from step to step.
bool TracedSteps::alike(size_t a, size_t b) const {
  const TracedStep &x = steps_[a], &y = steps_[b];
  if (x.acts.size() != y.acts.size()) return false;
  for (size_t i = 0; i < x.acts.size(); ++i)
    if (!same_act(x.acts[i], *this, y.acts[i])) return false;
  return true;
}

// The step that the later ones repeat: the last one like the one before it, so that it can follow
// itself.
bool TracedSteps::choose_step() {
  const size_t last = steps_.size() - 1, least = last > k_most_samples ? last - k_most_samples : 1;
  for (step_ = last; step_ > least; --step_) {
    if (!alike(step_ - 1, step_)) continue;
    alike_.clear();
    const size_t first = std::max<size_t>(step_, k_most_samples) - k_most_samples;
    for (size_t i = std::max<size_t>(first, 1); i <= step_; ++i)
      if (alike(i, step_)) alike_.push_back(i);
    if (alike_.size() >= k_least_samples) return true;
  }
  return false;
}

bool TracedSteps::look_at_frees() {
  const TracedStep &step = steps_[step_], &before = steps_[step_ - 1];
  made_.clear();
  uint64_t bytes = 0;
  for (size_t i = 0; i < step.acts.size(); ++i) {
    const TraceEvent& event = trace_.events[step.acts[i]];
    if (event.kind != TraceEventKind::alloc) continue;
    made_.push_back(i);
    bytes += std::min(event.bytes, k_most_step_bytes);
    if (bytes > k_most_step_bytes) return false;
  }
  freed_.assign(made_.size(), FreedBy::nobody);
  for (size_t i = step.first; i < step.last; ++i) {
    const TraceEvent& event = trace_.events[i];
    if (event.kind == TraceEventKind::free && event.index >= step.storages &&
        event.index - step.storages < freed_.size())
      freed_[event.index - step.storages] = FreedBy::step;
  }
  for (size_t i = step.first; i < step.last; ++i) {
    const TraceEvent& event = trace_.events[i];
    if (event.kind != TraceEventKind::free || event.index >= step.storages ||
        event.index < before.storages)
      continue;
    const size_t number = event.index - before.storages;
    if (number >= freed_.size()) continue;  // made between the two
    FreedBy& by = freed_[number];
    if (by == FreedBy::nobody) by = FreedBy::next_step;
  }
  return true;
}

// Whether most of what the steps make follows their batches.
bool TracedSteps::follows() {
  double all = 0, unclear = 0;
  for (const size_t act : made_) {
    const auto bytes = static_cast<double>(trace_.events[steps_[step_].acts[act]].bytes);
    all += bytes;
    if (bytes_rule(act).kind == ShapeRule::Kind::nearest) unclear += bytes;
  }
  return unclear * 1000 <= all * k_unclear_per_mille;
}

}  // namespace cufit::fit
