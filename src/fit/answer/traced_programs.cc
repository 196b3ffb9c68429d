// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/traced_programs.h"

#include <algorithm>
#include <utility>

#include "formats/model/trace_facts.h"

namespace cufit::fit {
namespace {

Warning difference_warning(const StepProgram& program) {
  const Difference& first = program.differences.front();
  return {first.what == Difference::What::falls ? "falls" : "differs",
          {{"batch", std::to_string(first.batch)},
           {"other", std::to_string(first.other_batch)},
           {"op", first.op.empty() ? first.other_op : first.op}},
          first.source.empty() ? first.other_source : first.source};
}

bool all_sizes_constant(const StepProgram& program) {
  return std::all_of(program.sizes.begin(), program.sizes.end(),
                     [](const Size& size) { return size.rule == SizeRule::constant; });
}

// Where it is the batch of one alone that parts from the others, they answer without it.
Result<void> split_off_one(std::vector<formats::TraceEvents>& traces, TracedPrograms& programs,
                           std::vector<Warning>& warnings) {
  const auto one =
      std::find_if(traces.begin(), traces.end(),
                   [](const formats::TraceEvents& events) { return events.fact("batch") == "1"; });
  if (programs.many.differences.empty() || traces.size() <= 2 || one == traces.end()) return {};
  std::vector<formats::TraceEvents> single;
  single.push_back(std::move(*one));
  traces.erase(one);
  CUFIT_TRY(rest, align(traces));
  CUFIT_TRY(alone, align(single));
  if (!rest.differences.empty()) return {};
  warnings.push_back(difference_warning(programs.many));
  warnings.back().id = "differs_at_one";
  programs.many = std::move(rest);
  programs.one = std::move(alone);
  return {};
}

}  // namespace

Result<TracedPrograms> traced_programs(std::vector<formats::TraceEvents> traces,
                                       std::optional<uint64_t> own_batch,
                                       std::vector<Warning>& warnings) {
  TracedPrograms out;
  out.own_batch = own_batch;
  if (traces.size() == 1 && traces[0].fact("batch").empty()) {
    // A name for what it is: the one batch size that can be answered for.
    out.batch_known = false;
    formats::add_fact(traces[0], "batch", "1");
  }
  CUFIT_TRY(all, align(traces));
  out.many = std::move(all);
  if (Result<void> done = split_off_one(traces, out, warnings); !done) return done.error();
  if (!out.many.differences.empty()) warnings.push_back(difference_warning(out.many));
  const StepProgram* own = out.many.at(own_batch.value_or(out.many.batches.front()));
  const uint32_t later = own != nullptr ? own->later_steps : out.many.later_steps;
  if (later != 0) warnings.push_back({"later_batches", {{"detail", std::to_string(later)}}, {}});
  if (out.many.extrapolates() && all_sizes_constant(out.many)) {
    // What was changed was not the batch size of what is trained.
    warnings.push_back({"batch_without_effect", {}, std::string(out.many.fact("batch_from"))});
    traces.resize(1);
    CUFIT_TRY(first, align(traces));
    out.many = std::move(first);
  }
  return out;
}

}  // namespace cufit::fit
