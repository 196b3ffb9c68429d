// SPDX-License-Identifier: Apache-2.0
#include "fit/later_batches.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "fit/size_regression.h"

namespace cufit::fit {
namespace {

using formats::TraceCall;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceMark;

constexpr std::string_view k_given = "batch_given", k_to_come = "batch_to_come";
constexpr size_t k_least_samples = 4;
constexpr size_t k_most_samples = 64, k_most_steps = 512;
constexpr size_t k_most_columns = 24, k_most_sizes = 1024;  // of a step's batches
constexpr size_t k_most_events = 400000;                    // of all steps that are added
// A size may grow by the square of k_furthest_shape: far below what the reader lets live.
constexpr uint64_t k_most_step_bytes = uint64_t{1} << 42;
// Of a step's bytes so many per mille may follow nothing.
constexpr double k_unclear_per_mille = 20;

struct Step {
  size_t first = 0, last = 0;  // of events: behind its beginning, up to its end
  uint32_t storages = 0;       // made before it
  std::vector<size_t> acts;    // its events that free nothing
};

// When what a step makes is freed, as the one that is repeated shows.
enum class FreedBy : uint8_t { nobody, step, next_step };

// One trace, what it says of batches, and its steps.
class Trace {
 public:
  explicit Trace(const TraceEvents& trace) : trace_(trace) {
    uint32_t storages = 0;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const TraceEvent& event = trace.events[i];
      if (event.kind == TraceEventKind::alloc) ++storages;
      if (event.kind == TraceEventKind::call) add_batch(trace.calls[event.index]);
      if (is_mark(event, TraceMark::after_steps) || is_mark(event, TraceMark::micro_batch))
        behind_ = true;
      if (behind_) continue;
      if (is_mark(event, TraceMark::step_begins)) {
        begins_ = {i + 1, i + 1, storages, {}};
      } else if (is_mark(event, TraceMark::step_ends) && begins_.first != 0) {
        begins_.last = i;
        steps_.push_back(std::move(begins_));
        begins_ = {};
      } else if (begins_.first != 0 && event.kind != TraceEventKind::free) {
        begins_.acts.push_back(i);
      }
    }
  }

  bool tells() const { return !given_.empty(); }

  // Finds what the steps have in common; false: nothing is added.
  bool learn() {
    if (steps_.size() < k_least_samples + 1 || given_.empty()) return false;
    const size_t each = given_.size() / steps_.size();
    const size_t sizes = given_.front().size();
    // More may be fetched than was trained on, but less than a step's.
    if (each == 0 || given_.size() - each * steps_.size() > 2 || sizes * each > k_most_sizes)
      return false;
    std::vector<Shape> all = given_;
    all.insert(all.end(), later_.begin(), later_.end());
    std::vector<Shape> shapes;  // of steps
    for (size_t i = 0; i + each <= all.size() && shapes.size() < steps_.size() + k_most_steps;
         i += each) {
      Shape shape;
      for (size_t j = i; j < i + each; ++j) {
        if (all[j].size() != sizes) return false;
        shape.insert(shape.end(), all[j].begin(), all[j].end());
      }
      shapes.push_back(std::move(shape));
    }
    if (!choose_step() || !look_at_frees()) return false;
    std::vector<Shape> seen;
    for (const size_t sample : samples_) seen.push_back(shapes[sample]);
    columns_.emplace(seen, sizes, k_most_columns);
    if (columns_->count() == 0 || columns_->count() > k_most_columns) return false;
    // In the order of the batches: traced steps behind the repeated one are repeated, too.
    for (size_t i = step_ + 1; i < shapes.size(); ++i)
      if (columns_->covers(shapes[i])) more_.push_back(std::move(shapes[i]));
    return more_.size() >= steps_.size() - step_ && follows();
  }

  size_t more() const {
    return std::min(more_.size(), k_most_events / std::max<size_t>(1, length()));
  }

  // Without what is told of batches, and with the first `count` of the later steps.
  TraceEvents extended(size_t count) {
    TraceEvents out = trace_;
    out.events.clear();
    out.calls.clear();
    out.categories.clear();
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
          out.calls.push_back(trace_.calls[event.index]);
          event.index = static_cast<uint32_t>(out.calls.size() - 1);
          break;
        case TraceEventKind::alloc:
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

 private:
  std::string_view op_of(const TraceCall& call) const {
    return trace_.texts[trace_.sites[call.site].op];
  }
  bool is_told(const TraceCall& call) const {
    const std::string_view op = op_of(call);
    return op == k_given || op == k_to_come;
  }
  void add_batch(const TraceCall& call) {
    if (!is_told(call)) return;
    const auto numbers = trace_.numbers_of(call);
    (op_of(call) == k_given ? given_ : later_).emplace_back(numbers.begin(), numbers.end());
  }

  // Whether two steps do the same; when they free what they made may differ from step to step.
  bool alike(size_t a, size_t b) const {
    const Step &x = steps_[a], &y = steps_[b];
    if (x.acts.size() != y.acts.size()) return false;
    for (size_t i = 0; i < x.acts.size(); ++i) {
      const TraceEvent &one = trace_.events[x.acts[i]], &other = trace_.events[y.acts[i]];
      if (one.kind != other.kind) return false;
      const bool same =
          one.kind == TraceEventKind::mark ? one.index == other.index : one.site == other.site;
      if (!same || (one.kind == TraceEventKind::call &&
                    trace_.calls[one.index].count != trace_.calls[other.index].count))
        return false;
    }
    return true;
  }

  // The step that the later ones repeat: the last one like the one before it, so that it can follow
  // itself.
  bool choose_step() {
    const size_t last = steps_.size() - 1,
                 least = last > k_most_samples ? last - k_most_samples : 1;
    for (step_ = last; step_ > least; --step_) {
      if (!alike(step_ - 1, step_)) continue;
      samples_.clear();
      const size_t first = std::max<size_t>(step_, k_most_samples) - k_most_samples;
      for (size_t i = std::max<size_t>(first, 1); i <= step_; ++i)
        if (alike(i, step_)) samples_.push_back(i);
      if (samples_.size() >= k_least_samples) return true;
    }
    return false;
  }

  bool look_at_frees() {
    const Step &step = steps_[step_], &before = steps_[step_ - 1];
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

  size_t length() const { return steps_[step_].last - steps_[step_].first; }

  const TraceEvent& of_sample(size_t sample, size_t act) const {
    return trace_.events[steps_[samples_[sample]].acts[act]];
  }

  const ShapeRule& rule_of(const std::vector<uint64_t>& numbers) {
    const auto found = rules_.find(numbers);
    if (found != rules_.end()) return found->second;
    return rules_.emplace(numbers, shape_rule(*columns_, numbers)).first->second;
  }
  // Of a call's: dimensions, flags, kinds.
  const ShapeRule& exact_rule_of(const std::vector<uint64_t>& numbers) {
    const auto found = exact_rules_.find(numbers);
    if (found != exact_rules_.end()) return found->second;
    return exact_rules_.emplace(numbers, exact_shape_rule(*columns_, numbers)).first->second;
  }

  std::vector<uint64_t> bytes_at(size_t act) const {
    std::vector<uint64_t> out;
    for (size_t i = 0; i < samples_.size(); ++i) out.push_back(of_sample(i, act).bytes);
    return out;
  }

  std::vector<uint64_t> numbers_at(size_t act, uint32_t number) const {
    std::vector<uint64_t> out;
    for (size_t i = 0; i < samples_.size(); ++i)
      out.push_back(trace_.numbers[trace_.calls[of_sample(i, act).index].first + number]);
    return out;
  }

  // Whether most of what the steps make follows their batches.
  bool follows() {
    double all = 0, unclear = 0;
    for (const size_t act : made_) {
      const auto bytes = static_cast<double>(trace_.events[steps_[step_].acts[act]].bytes);
      all += bytes;
      if (rule_of(bytes_at(act)).kind == ShapeRule::Kind::nearest) unclear += bytes;
    }
    return unclear * 1000 <= all * k_unclear_per_mille;
  }

  void add_step(const Shape& shape, TraceEvents& out) {
    const Step& from = steps_[step_];
    const auto before = static_cast<uint32_t>(out.categories.size());
    const auto made = static_cast<uint32_t>(made_.size());
    const size_t nearest = columns_->nearest(shape);
    size_t act = 0;
    out.events.push_back(
        {0, static_cast<uint32_t>(TraceMark::step_begins), 0, TraceEventKind::mark});
    for (size_t i = from.first; i < from.last; ++i) {
      TraceEvent event = trace_.events[i];
      switch (event.kind) {
        case TraceEventKind::alloc: {
          const std::vector<uint64_t> samples = bytes_at(act++);
          out.categories.push_back(trace_.categories[event.index]);
          event.bytes = rule_of(samples).at(*columns_, samples, shape);
          event.index = static_cast<uint32_t>(out.categories.size() - 1);
          break;
        }
        case TraceEventKind::free: {
          const bool own = event.index >= from.storages;
          const uint32_t base = own ? from.storages : steps_[step_ - 1].storages;
          // What is older is freed once.
          if (event.index < base) continue;
          const uint32_t number = event.index - base;
          if (number >= made || freed_[number] != (own ? FreedBy::step : FreedBy::next_step))
            continue;
          event.index = (own ? before : before - made) + number;
          break;
        }
        case TraceEventKind::call:
          event.index = add_call(act++, nearest, shape, out);
          break;
        case TraceEventKind::mark:
          ++act;
          break;
      }
      out.events.push_back(event);
    }
    // What other steps free at another time.
    for (uint32_t number = 0; number < made; ++number)
      if (freed_[number] == FreedBy::nobody)
        out.events.push_back({0, before - made + number, 0, TraceEventKind::free});
    out.events.push_back({0, static_cast<uint32_t>(TraceMark::step_ends), 0, TraceEventKind::mark});
  }

  // cuDNN was asked about the convolutions of the traced steps alone.
  uint32_t add_call(size_t act, size_t nearest, const Shape& shape, TraceEvents& out) {
    TraceCall call = trace_.calls[of_sample(nearest, act).index];
    const std::string_view op = op_of(call);
    bool follow = !starts_with(op, "conv") && !starts_with(op, "rnn");
    std::vector<uint64_t> numbers;
    for (uint32_t i = 0; follow && i < call.count; ++i) {
      const std::vector<uint64_t> samples = numbers_at(act, i);
      const ShapeRule& rule = exact_rule_of(samples);
      follow = rule.kind != ShapeRule::Kind::nearest;
      numbers.push_back(rule.at(*columns_, samples, shape));
    }
    if (follow) {
      call.first = static_cast<uint32_t>(out.numbers.size());
      out.numbers.insert(out.numbers.end(), numbers.begin(), numbers.end());
    }
    out.calls.push_back(call);
    return static_cast<uint32_t>(out.calls.size() - 1);
  }

  const TraceEvents& trace_;
  std::vector<Shape> given_, later_;
  std::vector<Step> steps_;
  Step begins_;
  bool behind_ = false;
  std::vector<size_t> samples_;  // steps that are alike
  size_t step_ = 0;              // one of them, which the later ones repeat
  std::vector<size_t> made_;     // acts of the last step that make storages
  std::vector<FreedBy> freed_;   // by storage of a step
  std::optional<ShapeColumns> columns_;
  std::vector<Shape> more_;
  std::map<std::vector<uint64_t>, ShapeRule> rules_, exact_rules_;  // by what the samples have
};

}  // namespace

std::optional<LaterSteps> with_later_batches(std::span<const TraceEvents> traces) {
  std::vector<Trace> all;
  bool tells = false;
  for (const TraceEvents& trace : traces) {
    all.emplace_back(trace);
    tells = tells || all.back().tells();
  }
  if (!tells) return std::nullopt;
  size_t more = SIZE_MAX;
  for (Trace& trace : all) more = std::min(more, trace.learn() ? trace.more() : 0);
  LaterSteps out;
  out.steps = static_cast<uint32_t>(more);
  for (Trace& trace : all) out.traces.push_back(trace.extended(more));
  return out;
}

}  // namespace cufit::fit
