// SPDX-License-Identifier: Apache-2.0
#include "fit/later_batches.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"

namespace cufit::fit {
namespace {

using formats::TraceEvents;

// So near to the batch size's own growth is that of a sum over some hundred samples.
constexpr double k_in_measure = 0.15;

// Of several traces, by batch size, the shapes of their steps.
class Compared {
 public:
  // False: they cannot be compared.
  bool read(std::span<const TraceEvents> traces) {
    steps_.reserve(traces.size());
    for (const TraceEvents& trace : traces) {
      steps_.emplace_back(trace);
      batches_.push_back(parse_uint(trace.fact("batch")).value_or(0));
      if (batches_.back() == 0 || steps_.back().shapes().empty()) return false;
      const TracedSteps &first = steps_.front(), &last = steps_.back();
      if (first.steps() != last.steps() || first.sizes_of_batch() != last.sizes_of_batch())
        return false;
    }
    for (TracedSteps& steps : steps_) peers_.push_back(&steps);
    first_ =
        static_cast<size_t>(std::min_element(batches_.begin(), batches_.end()) - batches_.begin());
    const size_t length = steps_.front().shapes().front().size();
    for (TracedSteps& steps : steps_)
      if (steps.shapes().front().size() != length) return false;
    bool batch = false;
    for (size_t at = 0; at < length; ++at) {
      const std::optional<Follows> follows = follows_batch(at);
      if (!follows) return false;
      follows_.push_back(*follows);
      batch = batch || *follows == Follows::equals;
    }
    return batch;
  }

  bool same() {
    for (size_t i = 0; i < steps_.size(); ++i)
      for (size_t step = 0; step < steps_[i].steps(); ++step)
        if (steps_[i].shapes()[step] != wanted(i, step)) return false;
    return true;
  }

  std::optional<LaterSteps> at_shapes_of_first() {
    for (TracedSteps& steps : steps_)
      if (!steps.learn_from(peers_)) return std::nullopt;
    std::vector<size_t> kept;  // of the steps of the first
    for (size_t step = 0; step < steps_[first_].shapes().size(); ++step) {
      bool covered = true;
      for (size_t i = 0; i < steps_.size(); ++i)
        covered = covered && steps_[i].covers(wanted(i, step));
      if (covered)
        kept.push_back(step);
      else if (step < steps_[first_].steps())
        return std::nullopt;
    }
    size_t more = SIZE_MAX;
    for (size_t i = 0; i < steps_.size(); ++i) {
      std::vector<Shape> shapes;
      for (const size_t step : kept) shapes.push_back(wanted(i, step));
      steps_[i].set_shapes(std::move(shapes));
      more = std::min(more, steps_[i].more());
    }
    LaterSteps out;
    out.steps = static_cast<uint32_t>(more);
    for (TracedSteps& steps : steps_) out.traces.push_back(steps.extended(more));
    return out;
  }

 private:
  uint64_t most(size_t trace, size_t at) {
    uint64_t out = 0;
    for (size_t step = 0; step < steps_[trace].steps(); ++step)
      out = std::max(out, steps_[trace].shapes()[step][at]);
    return out;
  }

  // How a size goes with the batch size from trace to trace.
  enum class Follows : uint8_t {
    nothing,
    equals,      // the number of samples
    fixed,       // of one size in all steps of a trace, such as one more than that
    in_measure,  // a sum over the samples, such as the nodes of graphs
  };

  // Nullopt: neither one nor another, such as samples that share a number of tokens.
  std::optional<Follows> follows_batch(size_t at) {
    if (is_batch(at)) return Follows::equals;
    bool fixed = true, measured = true, none = true;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const double grows = mean(i, at) / mean(first_, at);
      const double batch = double(batches_[i]) / double(batches_[first_]);
      fixed = fixed && is_fixed(i, at);
      measured = measured && std::abs(grows / batch - 1) < k_in_measure;
      none = none && std::abs(grows - 1) <= (batch - 1) / 2;
    }
    if (fixed) return Follows::fixed;
    if (measured) return Follows::in_measure;
    return none ? std::optional(Follows::nothing) : std::nullopt;
  }

  double mean(size_t trace, size_t at) {
    double sum = 0;
    for (const Shape& shape : steps_[trace].shapes()) sum += double(shape[at]);
    return std::max(sum, 1.0) / double(steps_[trace].shapes().size());
  }

  bool is_fixed(size_t trace, size_t at) {
    const std::vector<Shape>& shapes = steps_[trace].shapes();
    return std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
      return shape[at] == shapes.front()[at];
    });
  }

  // Whether this size is the number of samples: never more than the batch size, as many as that in
  // the first trace, and more in the others.
  bool is_batch(size_t at) {
    if (most(first_, at) != batches_[first_]) return false;
    for (size_t i = 0; i < steps_.size(); ++i)
      if (i != first_ && (most(i, at) > batches_[i] || most(i, at) <= batches_[first_]))
        return false;
    return true;
  }

  Shape wanted(size_t trace, size_t step) {
    Shape out = steps_[first_].shapes()[step];
    for (size_t at = 0; at < out.size(); ++at) {
      if (follows_[at] == Follows::equals) out[at] = batches_[trace];
      if (follows_[at] == Follows::fixed) out[at] = steps_[trace].shapes().front()[at];
      if (follows_[at] == Follows::in_measure) out[at] = out[at] * batches_[trace] / batches_[first_];
    }
    return out;
  }

  std::vector<TracedSteps> steps_;
  std::vector<TracedSteps*> peers_;
  std::vector<uint64_t> batches_;
  std::vector<Follows> follows_;  // by size of a shape
  size_t first_ = 0;
};

}  // namespace

LaterBatches::LaterBatches(std::span<const TraceEvents> traces) {
  steps_.reserve(traces.size());  // they name each other
  for (const TraceEvents& trace : traces) steps_.emplace_back(trace);
  for (TracedSteps& trace : steps_) more_.push_back(trace.learn() ? trace.more() : 0);
}

bool LaterBatches::tells() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const TracedSteps& trace) { return trace.tells(); });
}

bool LaterBatches::tells(size_t trace) const { return steps_[trace].tells(); }

LaterSteps LaterBatches::together() {
  const size_t more = *std::min_element(more_.begin(), more_.end());
  LaterSteps out;
  out.steps = static_cast<uint32_t>(more);
  for (TracedSteps& trace : steps_) out.traces.push_back(trace.extended(more));
  return out;
}

uint32_t LaterBatches::own_steps(size_t trace) const {
  return static_cast<uint32_t>(more_[trace]);
}

TraceEvents LaterBatches::alone(size_t trace) { return steps_[trace].extended(more_[trace]); }

std::optional<LaterSteps> with_comparable_batches(std::span<const TraceEvents> traces) {
  if (traces.size() < 2) return std::nullopt;
  Compared compared;
  if (!compared.read(traces) || compared.same()) return std::nullopt;
  return compared.at_shapes_of_first();
}

}  // namespace cufit::fit
