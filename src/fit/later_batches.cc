// SPDX-License-Identifier: Apache-2.0
#include "fit/later_batches.h"

#include <algorithm>

#include "base/number.h"
#include "fit/traced_steps.h"

namespace cufit::fit {
namespace {

using formats::TraceEvents;

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
    for (size_t at = 0; at < length; ++at)
      if (is_batch(at)) batch_sizes_.push_back(at);
    return !batch_sizes_.empty();
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
    for (const size_t at : batch_sizes_) out[at] = batches_[trace];
    return out;
  }

  std::vector<TracedSteps> steps_;
  std::vector<TracedSteps*> peers_;
  std::vector<uint64_t> batches_;
  std::vector<size_t> batch_sizes_;  // of a shape
  size_t first_ = 0;
};

}  // namespace

std::optional<LaterSteps> with_later_batches(std::span<const TraceEvents> traces) {
  std::vector<TracedSteps> all;
  all.reserve(traces.size());  // they name each other
  bool tells = false;
  for (const TraceEvents& trace : traces) {
    all.emplace_back(trace);
    tells = tells || all.back().tells();
  }
  if (!tells) return std::nullopt;
  size_t more = SIZE_MAX;
  for (TracedSteps& trace : all) more = std::min(more, trace.learn() ? trace.more() : 0);
  LaterSteps out;
  out.steps = static_cast<uint32_t>(more);
  for (TracedSteps& trace : all) out.traces.push_back(trace.extended(more));
  return out;
}

std::optional<LaterSteps> with_comparable_batches(std::span<const TraceEvents> traces) {
  if (traces.size() < 2) return std::nullopt;
  Compared compared;
  if (!compared.read(traces) || compared.same()) return std::nullopt;
  return compared.at_shapes_of_first();
}

}  // namespace cufit::fit
