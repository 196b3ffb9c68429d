// SPDX-License-Identifier: Apache-2.0
#include "fit/trace_alignment.h"

#include <algorithm>
#include <utility>

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

// Each with all of its own later batches: those of a larger batch size come to their end sooner.
Result<std::vector<StepProgram>> each_with_its_own(std::span<const TraceEvents> traces) {
  std::vector<StepProgram> out;
  for (const TraceEvents& trace : traces) {
    const std::optional<LaterSteps> later = with_later_batches({&trace, 1});
    CUFIT_TRY(alone, align_as_traced(later ? std::span<const TraceEvents>(later->traces)
                                           : std::span<const TraceEvents>(&trace, 1)));
    alone.later_steps = later ? later->steps : 0;
    out.push_back(std::move(alone));
  }
  std::sort(out.begin(), out.end(), [](const StepProgram& a, const StepProgram& b) {
    return a.batches.front() < b.batches.front();
  });
  return out;
}

Result<StepProgram> align_later(const LaterSteps& later) {
  CUFIT_TRY(out, align_as_traced(later.traces));
  out.later_steps = later.steps;
  return out;
}

// Programs of one trace each answer for that one, with all that it tells.
Result<StepProgram> with_own_apart(StepProgram program, std::span<const TraceEvents> traces) {
  CUFIT_TRY(own, each_with_its_own(traces));
  const bool more = std::any_of(own.begin(), own.end(), [&](const StepProgram& alone) {
    return alone.later_steps > program.later_steps;
  });
  if (program.apart.empty() && program.whole.empty() && !more) return program;
  for (StepProgram& alone : own) alone.cudnn = program.cudnn;
  (program.apart.empty() ? program.whole : program.apart) = std::move(own);
  return program;
}

// Where steps over other batches cannot be laid over each other, over those of the first trace; the
// first one as it is answers for itself.
Result<StepProgram> align_comparable(std::span<const TraceEvents> traces, const LaterSteps& own) {
  CUFIT_TRY(laid_over, align_later(own));
  CUFIT_TRY(as_they_are, with_own_apart(std::move(laid_over), traces));
  const std::optional<LaterSteps> comparable = with_comparable_batches(traces);
  if (!comparable) return as_they_are;
  CUFIT_TRY(out, align_later(*comparable));
  if (!out.differences.empty() || falls(out)) return as_they_are;
  CUFIT_TRY(alone, each_with_its_own(traces));
  alone.resize(1);
  alone.front().cudnn = out.cudnn;
  out.whole = std::move(alone);
  return out;
}

}  // namespace

Result<StepProgram> align(std::span<const TraceEvents> traces) {
  const std::optional<LaterSteps> later = with_later_batches(traces);
  CUFIT_TRY(out, later ? align_comparable(traces, *later) : align_as_traced(traces));
  if (!falls(out)) return out;
  CUFIT_TRY(apart, each_with_its_own(traces));
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
  for (StepProgram& program : apart) program.cudnn = out.cudnn;
  parted.cudnn = out.cudnn;
  parted.apart = std::move(apart);
  return parted;
}

}  // namespace cufit::fit
