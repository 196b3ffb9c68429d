// SPDX-License-Identifier: Apache-2.0
// One trace as steps over batches whose sizes it tells (steps/later_batches.py of the tracer), and
// how what a step makes follows them. Used by later_batches.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fit/size_regression.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

struct TracedStep {
  size_t first = 0, last = 0;  // of events: behind its beginning, up to its end
  uint32_t storages = 0;       // made before it
  std::vector<size_t> acts;    // its events that free nothing
};

// When what a step makes is freed, as the one that is repeated shows.
enum class FreedBy : uint8_t { nobody, step, next_step };

// One trace, what it says of batches, and its steps.
class TracedSteps {
 public:
  explicit TracedSteps(const formats::TraceEvents& trace);

  bool tells() const { return !given_.empty(); }

  // Finds how the steps follow their batches; false: nothing can be reckoned.
  bool learn();
  // The same from the steps of several traces, this one among them, each of which has shapes(). They
  // outlive it.
  bool learn_from(std::span<TracedSteps* const> peers);

  // Of its steps, then of those to come, as far as the batches tell. Empty: they do not.
  const std::vector<Shape>& shapes();
  size_t steps() const { return steps_.size(); }
  size_t sizes_of_batch() const { return given_.empty() ? 0 : given_.front().size(); }

  // Steps to come that can be reckoned.
  size_t more() const;
  // After learn_from(): whether a step of this shape is near enough to what was seen, and of which
  // shapes, each of these, its steps and those to come are to be in place of its own.
  bool covers(const Shape& shape) const { return columns_->covers(shape); }
  void set_shapes(std::vector<Shape> shapes);

  // Without what is told of batches, and with the first `count` of the later steps.
  formats::TraceEvents extended(size_t count);

 private:
  struct Sample {
    const TracedSteps* of;
    size_t step;
  };
  // Of the repeated step, at another shape.
  struct Act {
    size_t number;
    const Shape* shape;
  };

  std::string_view op_of(const formats::TraceCall& call) const;
  bool is_told(const formats::TraceCall& call) const;
  void add_batch(const formats::TraceCall& call);
  bool alike(size_t a, size_t b) const;
  bool same_act(size_t event, const TracedSteps& other, size_t of_other) const;
  bool choose_step();
  bool look_at_frees();
  bool follows();
  size_t length() const { return steps_[step_].last - steps_[step_].first; }
  const formats::TraceEvent& of_sample(const Sample& sample, size_t act) const {
    return sample.of->trace_.events[sample.of->steps_[sample.step].acts[act]];
  }
  const ShapeRule& rule_of(const std::vector<uint64_t>& numbers);
  const ShapeRule& exact_rule_of(const std::vector<uint64_t>& numbers);
  // The same act of a sample: its bytes, or a number of its call.
  uint64_t bytes_at(size_t act, const Sample& sample) const;
  uint64_t number_at(size_t act, uint32_t number, const Sample& sample) const;
  // Looked for once: an act is asked for as often as there are steps to come.
  const ShapeRule& bytes_rule(size_t act);
  const ShapeRule& number_rule(size_t act, uint32_t number);
  const Sample& nearest(const Shape& shape);
  void add_step(const Shape& shape, formats::TraceEvents& out);
  uint32_t add_call(formats::TraceCall own, const Act& act, formats::TraceEvents& out);
  uint64_t bytes_of(const Act& act);
  std::map<size_t, Act> acts_at_other_shapes() const;
  void add_acts_before_first(std::map<size_t, Act>& out) const;
  void add_acts(const TracedStep& step, const Shape& wanted, std::map<size_t, Act>& out) const;
  std::vector<size_t> repeated_acts(const TracedStep& step) const;

  const formats::TraceEvents& trace_;
  std::vector<Shape> given_, later_, shapes_;
  std::vector<Shape> wanted_;                     // of the traced steps; empty: as they are
  std::vector<TracedStep> steps_, steps_behind_;  // behind validation
  TracedStep begins_;
  bool behind_ = false;
  std::vector<size_t> alike_;    // steps of this trace that are alike
  std::vector<Sample> samples_;  // steps, of other traces too, that are alike
  size_t step_ = 0;              // one of them, which the later ones repeat
  std::vector<size_t> made_;     // acts of the last step that make storages
  std::vector<FreedBy> freed_;   // by storage of a step
  std::optional<ShapeColumns> columns_;
  std::vector<Shape> more_;
  std::map<std::vector<uint64_t>, ShapeRule> rules_, exact_rules_;  // by what the samples have
  struct RulesOfAct {
    const ShapeRule* bytes = nullptr;
    std::vector<const ShapeRule*> numbers;
  };
  std::vector<RulesOfAct> rules_of_acts_;  // of the two above
  Shape nearest_to_;                       // the last that was asked for, and its sample
  size_t nearest_ = SIZE_MAX;
};

}  // namespace cufit::fit
