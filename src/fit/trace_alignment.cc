// SPDX-License-Identifier: Apache-2.0
#include "fit/trace_alignment.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "fit/later_batches.h"

namespace cufit::fit {
namespace {

using formats::TraceEvents;

// What a step takes at most, by the sizes alone.
std::optional<uint64_t> most_at(const StepProgram& program, uint64_t batch) {
  const Result<std::vector<SizeAt>> sizes = sizes_at(program, batch);
  if (!sizes) return std::nullopt;
  uint64_t live = 0, most = 0;
  for (const StepEvent& event : program.events) {
    if (event.kind == StepEventKind::alloc) live += (*sizes)[event.size].point;
    if (event.kind == StepEventKind::free)
      live -= (*sizes)[program.events[program.storages[event.index].alloc].size].point;
    most = std::max(most, live);
  }
  return most;
}

// Whether a larger batch would take less.
bool falls(const StepProgram& program) {
  constexpr uint64_t k_per_mille = 5;
  if (!program.extrapolates()) return false;
  uint64_t before = 0;
  for (const uint64_t batch :
       {uint64_t{1}, program.batches.front(), program.batches.back(), 2 * program.batches.back()}) {
    const std::optional<uint64_t> most = most_at(program, batch);
    if (!most) continue;
    if (*most < before - before / 1000 * k_per_mille) return true;
    before = std::max(before, *most);
  }
  return false;
}

// Programs of one trace each, made when they are asked for: each with all of its own later batches,
// of which those of a larger batch size come to their end sooner.
class OwnPrograms {
 public:
  OwnPrograms(std::span<const TraceEvents> traces, LaterBatches& later)
      : traces_(traces), later_(later) {}

  // Whether one has more later steps than that.
  bool more_than(uint32_t steps) const {
    for (size_t i = 0; i < traces_.size(); ++i)
      if (later_.own_steps(i) > steps) return true;
    return false;
  }

  Result<StepProgram> of(size_t trace) {
    if (!later_.tells(trace)) return align_as_traced(traces_.subspan(trace, 1));
    const TraceEvents extended = later_.alone(trace);
    CUFIT_TRY(out, align_as_traced({&extended, 1}));
    out.later_steps = later_.own_steps(trace);
    return out;
  }

  // By batch size, with what cuDNN said of all.
  Result<std::vector<StepProgram>> all(const CudnnAnswers& cudnn) {
    std::vector<StepProgram> out;
    for (size_t i = 0; i < traces_.size(); ++i) {
      CUFIT_TRY(alone, of(i));
      alone.cudnn = cudnn;
      out.push_back(std::move(alone));
    }
    std::sort(out.begin(), out.end(), [](const StepProgram& a, const StepProgram& b) {
      return a.batches.front() < b.batches.front();
    });
    return out;
  }

 private:
  std::span<const TraceEvents> traces_;
  LaterBatches& later_;
};

Result<StepProgram> align_later(const LaterSteps& later) {
  CUFIT_TRY(out, align_as_traced(later.traces));
  out.later_steps = later.steps;
  return out;
}

// Over steps of the first trace's batches; the first one as it is answers for itself. Nothing where
// steps cannot be laid over each other so.
Result<std::optional<StepProgram>> align_comparable(std::span<const TraceEvents> traces,
                                                    OwnPrograms& own) {
  std::optional<StepProgram> nothing;
  const std::optional<LaterSteps> comparable = with_comparable_batches(traces);
  if (!comparable) return nothing;
  CUFIT_TRY(out, align_later(*comparable));
  if (!out.differences.empty() || falls(out)) return nothing;
  const auto first = std::find_if(traces.begin(), traces.end(), [&out](const TraceEvents& trace) {
    return parse_uint(trace.fact("batch")) == out.batches.front();
  });
  CUFIT_TRY(alone, own.of(static_cast<size_t>(first - traces.begin())));
  alone.cudnn = out.cudnn;
  out.whole.clear();
  out.whole.push_back(std::move(alone));
  return std::optional<StepProgram>(std::move(out));
}

// Programs of one trace each answer for that one, with all that it tells.
Result<StepProgram> align_with_later(std::span<const TraceEvents> traces, LaterBatches& later,
                                     OwnPrograms& own) {
  CUFIT_TRY(comparable, align_comparable(traces, own));
  if (comparable) return std::move(*comparable);
  CUFIT_TRY(out, align_later(later.together()));
  if (out.apart.empty() && out.whole.empty() && !own.more_than(out.later_steps)) return out;
  CUFIT_TRY(each, own.all(out.cudnn));
  (out.apart.empty() ? out.whole : out.apart) = std::move(each);
  return out;
}

}  // namespace

Result<StepProgram> align(std::span<const TraceEvents> traces) {
  LaterBatches later(traces);
  OwnPrograms own(traces, later);
  CUFIT_TRY(out, later.tells() ? align_with_later(traces, later, own) : align_as_traced(traces));
  if (!falls(out)) return out;
  CUFIT_TRY(apart, own.all(out.cudnn));
  StepProgram parted = apart.back();
  parted.differences.push_back({Difference::What::falls,
                                1,
                                0,
                                out.batches.front(),
                                out.batches.back(),
                                {},
                                {},
                                {},
                                {},
                                {},
                                {}});
  parted.cudnn = out.cudnn;
  parted.apart = std::move(apart);
  return parted;
}

}  // namespace cufit::fit
