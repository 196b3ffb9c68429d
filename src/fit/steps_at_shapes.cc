// SPDX-License-Identifier: Apache-2.0
// Steps of TracedSteps at the shapes of other batches: those that were traced, and those that are
// added.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "fit/traced_steps.h"

namespace cufit::fit {

using formats::TraceCall;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceMark;

namespace {

// Of acts that two steps do not have in common, one after the other.
constexpr size_t k_acts_before_first = 100;
constexpr size_t k_furthest_act = 2000, k_acts_in_a_row = 2, k_most_gaps = 1000;

}  // namespace

const ShapeRule& TracedSteps::rule_of(const std::vector<uint64_t>& numbers) {
  const auto found = rules_.find(numbers);
  if (found != rules_.end()) return found->second;
  return rules_.emplace(numbers, shape_rule(*columns_, numbers)).first->second;
}

// Of a call's: dimensions, flags, kinds.
const ShapeRule& TracedSteps::exact_rule_of(const std::vector<uint64_t>& numbers) {
  const auto found = exact_rules_.find(numbers);
  if (found != exact_rules_.end()) return found->second;
  return exact_rules_.emplace(numbers, exact_shape_rule(*columns_, numbers)).first->second;
}

uint64_t TracedSteps::bytes_at(size_t act, const Sample& sample) const {
  return of_sample(sample, act).bytes;
}

uint64_t TracedSteps::number_at(size_t act, uint32_t number, const Sample& sample) const {
  const TraceEvents& trace = sample.of->trace_;
  return trace.numbers[trace.calls[of_sample(sample, act).index].first + number];
}

const ShapeRule& TracedSteps::bytes_rule(size_t act) {
  const ShapeRule*& rule = rules_of_acts_[act].bytes;
  if (rule == nullptr) {
    std::vector<uint64_t> samples;
    for (const Sample& sample : samples_) samples.push_back(bytes_at(act, sample));
    rule = &rule_of(samples);
  }
  return *rule;
}

const ShapeRule& TracedSteps::number_rule(size_t act, uint32_t number) {
  std::vector<const ShapeRule*>& rules = rules_of_acts_[act].numbers;
  if (number >= rules.size()) rules.resize(number + 1);
  if (rules[number] == nullptr) {
    std::vector<uint64_t> samples;
    for (const Sample& sample : samples_) samples.push_back(number_at(act, number, sample));
    rules[number] = &exact_rule_of(samples);
  }
  return *rules[number];
}

const TracedSteps::Sample& TracedSteps::nearest(const Shape& shape) {
  if (nearest_ == SIZE_MAX || nearest_to_ != shape) {
    nearest_ = columns_->nearest(shape);
    nearest_to_ = shape;
  }
  return samples_[nearest_];
}

uint64_t TracedSteps::bytes_of(const Act& act) {
  const ShapeRule& rule = bytes_rule(act.number);
  if (rule.kind == ShapeRule::Kind::line) return rule.at(*act.shape);
  const bool constant = rule.kind == ShapeRule::Kind::constant;
  return bytes_at(act.number, constant ? samples_.front() : nearest(*act.shape));
}

// Where the traced steps are wanted at other shapes than theirs: their events, with what each is in
// the repeated step.
std::map<size_t, TracedSteps::Act> TracedSteps::acts_at_other_shapes() const {
  std::map<size_t, Act> out;
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i] == shapes_[i]) continue;
    add_acts(steps_[i], wanted_[i], out);
  }
  if (!out.empty()) add_acts_before_first(out);
  // Of which batch these were is not told.
  if (!wanted_.empty())
    for (const TracedStep& step : steps_behind_) add_acts(step, wanted_.front(), out);
  return out;
}

// The first step begins where a module is first called: its batch came before that.
void TracedSteps::add_acts_before_first(std::map<size_t, Act>& out) const {
  const std::vector<size_t>& repeated = steps_[step_].acts;
  const auto first = out.lower_bound(steps_.front().first);
  size_t left = first == out.end() ? 0 : first->second.number, skipped = 0;
  for (size_t i = steps_.front().first - 1; left > 0 && i-- > 0 && skipped < k_acts_before_first;) {
    const TraceEvent &event = trace_.events[i], &again = trace_.events[repeated[left - 1]];
    if (event.kind == TraceEventKind::free) continue;
    const bool same = event.kind == TraceEventKind::alloc && again.kind == event.kind &&
                      trace_.sites[event.site].op == trace_.sites[again.site].op &&
                      trace_.sites[event.site].source == trace_.sites[again.site].source;
    if (same)
      out.emplace(i, Act{--left, &wanted_.front()});
    else
      ++skipped;
  }
}

void TracedSteps::add_acts(const TracedStep& step, const Shape& wanted,
                           std::map<size_t, Act>& out) const {
  const std::vector<size_t> acts = repeated_acts(step);
  for (size_t i = 0; i < acts.size(); ++i)
    if (acts[i] != SIZE_MAX) out.emplace(step.acts[i], Act{acts[i], &wanted});
}

// For each act of a step the same one of the repeated step; SIZE_MAX: that has none. The first step
// makes more, such as the optimizer's state, and may lack something.
std::vector<size_t> TracedSteps::repeated_acts(const TracedStep& step) const {
  const std::vector<size_t>&acts = step.acts, &repeated = steps_[step_].acts;
  std::vector<size_t> out(acts.size(), SIZE_MAX);
  const auto in_a_row = [&](size_t a, size_t b) {
    for (size_t i = 0; i < k_acts_in_a_row; ++i) {
      if (a + i == acts.size() || b + i == repeated.size()) return i > 0;
      if (!same_act(acts[a + i], *this, repeated[b + i])) return false;
    }
    return true;
  };
  size_t a = 0, b = 0, gaps = 0;
  while (a < acts.size() && b < repeated.size()) {
    if (same_act(acts[a], *this, repeated[b])) {
      out[a++] = b++;
      continue;
    }
    if (++gaps > k_most_gaps) break;
    size_t skip = 1;
    while (skip < k_furthest_act && !(a + skip < acts.size() && in_a_row(a + skip, b)) &&
           !(b + skip < repeated.size() && in_a_row(a, b + skip)))
      ++skip;
    if (skip == k_furthest_act) {
      ++a;
      ++b;
    } else if (a + skip < acts.size() && in_a_row(a + skip, b)) {
      a += skip;
    } else {
      b += skip;
    }
  }
  return out;
}

void TracedSteps::add_step(const Shape& shape, TraceEvents& out) {
  const TracedStep& from = steps_[step_];
  const auto before = static_cast<uint32_t>(out.categories.size());
  const auto made = static_cast<uint32_t>(made_.size());
  size_t act = 0;
  out.events.push_back({0, static_cast<uint32_t>(TraceMark::step_begins), 0, TraceEventKind::mark});
  for (size_t i = from.first; i < from.last; ++i) {
    TraceEvent event = trace_.events[i];
    switch (event.kind) {
      case TraceEventKind::alloc: {
        out.categories.push_back(trace_.categories[event.index]);
        event.bytes = bytes_of({act++, &shape});
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
        event.index = add_call(trace_.calls[event.index], {act++, &shape}, out);
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

// As `own`, of this trace. cuDNN was asked about the convolutions of the traced steps alone.
uint32_t TracedSteps::add_call(TraceCall own, const Act& act, TraceEvents& out) {
  const std::string_view op = op_of(own);
  // At the shapes of the first trace, that one asked for them at all batch sizes.
  bool follow = !wanted_.empty() || (!starts_with(op, "conv") && !starts_with(op, "rnn"));
  std::vector<uint64_t> numbers;
  for (uint32_t i = 0; follow && i < own.count; ++i) {
    const ShapeRule& rule = number_rule(act.number, i);
    follow = rule.kind != ShapeRule::Kind::nearest;
    numbers.push_back(rule.kind == ShapeRule::Kind::line
                          ? rule.at(*act.shape)
                          : number_at(act.number, i, samples_.front()));
  }
  if (!follow) {
    const Sample& near = nearest(*act.shape);
    const TraceEvents& other = near.of->trace_;
    const auto as_there = other.numbers_of(other.calls[of_sample(near, act.number).index]);
    numbers.assign(as_there.begin(), as_there.end());
  }
  own.first = static_cast<uint32_t>(out.numbers.size());
  out.numbers.insert(out.numbers.end(), numbers.begin(), numbers.end());
  out.calls.push_back(own);
  return static_cast<uint32_t>(out.calls.size() - 1);
}

}  // namespace cufit::fit
