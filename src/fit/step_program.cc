// SPDX-License-Identifier: Apache-2.0
#include "fit/step_program.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/number.h"
#include "fit/common_setup.h"
#include "fit/step_program_builder.h"
#include "fit/trace_alignment.h"
#include "fit/trace_parts.h"

namespace cufit::fit {
namespace {

using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;

constexpr uint32_t k_no_site = UINT32_MAX;
constexpr uint64_t k_max_batch = uint64_t{1} << 24;

// Whether the sites of two traces are the same place of the program.
class SiteMatch {
 public:
  SiteMatch(const TraceEvents& first, const TraceEvents& other)
      : first_(first), other_(other), known_(other.sites.size(), k_no_site) {}
  bool same(uint32_t site, uint32_t other) {
    if (known_[other] == site) return true;
    const Site& a = first_.sites[site];
    const Site& b = other_.sites[other];
    if (a.phase != b.phase || a.stream != b.stream || first_.texts[a.op] != other_.texts[b.op] ||
        first_.texts[a.module] != other_.texts[b.module] ||
        first_.texts[a.source] != other_.texts[b.source])
      return false;
    known_[other] = site;
    return true;
  }

 private:
  const TraceEvents& first_;
  const TraceEvents& other_;
  std::vector<uint32_t> known_;  // by site of the other: the site of the first it was equal to
};

uint32_t site_near(const TraceEvents& trace, size_t event) {
  for (size_t i = std::min(event + 1, trace.events.size()); i-- > 0;) {
    const TraceEvent& at = trace.events[i];
    if (at.kind == TraceEventKind::alloc || at.kind == TraceEventKind::call) return at.site;
  }
  return k_no_site;
}

Difference difference_at(const Traced& first, const Traced& other, size_t event,
                         Difference::What what) {
  Difference out{what, other.given, event, first.batch, other.batch, {}, {}, {}, {}, {}, {}};
  const auto fill = [event](const TraceEvents& trace, std::string& op, std::string& module,
                            std::string& source) {
    const uint32_t site = site_near(trace, event);
    if (site == k_no_site) return;
    op = trace.texts[trace.sites[site].op];
    module = trace.texts[trace.sites[site].module];
    source = trace.texts[trace.sites[site].source];
  };
  fill(*first.trace, out.op, out.module, out.source);
  fill(*other.trace, out.other_op, out.other_module, out.other_source);
  return out;
}

// The first place where the two do not tell of the same thing.
std::optional<Difference> compare(const Traced& first, const Traced& other) {
  const TraceEvents& a = *first.trace;
  const TraceEvents& b = *other.trace;
  SiteMatch sites(a, b);
  const size_t count = std::min(a.events.size(), b.events.size());
  for (size_t i = 0; i < count; ++i) {
    const TraceEvent& x = a.events[i];
    const TraceEvent& y = b.events[i];
    const bool has_site = x.kind == TraceEventKind::alloc || x.kind == TraceEventKind::call;
    if (x.kind != y.kind || x.index != y.index)
      return difference_at(first, other, i, Difference::What::event);
    if (has_site && !sites.same(x.site, y.site))
      return difference_at(first, other, i, Difference::What::site);
    if (x.kind == TraceEventKind::call && a.calls[x.index].count != b.calls[y.index].count)
      return difference_at(first, other, i, Difference::What::call);
  }
  if (a.events.size() != b.events.size())
    return difference_at(first, other, count, Difference::What::length);
  return std::nullopt;
}

Result<std::vector<Traced>> sorted_traces(std::span<const TraceEvents> traces) {
  std::vector<Traced> out;
  for (size_t i = 0; i < traces.size(); ++i) {
    const std::optional<uint64_t> batch = parse_uint(traces[i].fact("batch"));
    if (!batch || *batch == 0 || *batch > k_max_batch)
      return fail(Code::usage, format("{}: it does not say its batch size", traces[i].name));
    if (traces[i].storage_count() == 0)
      return fail(Code::malformed, format("{}: it tells of no storage", traces[i].name));
    out.push_back({&traces[i], *batch, i});
  }
  if (out.empty()) return fail(Code::usage, "no trace");
  std::sort(out.begin(), out.end(),
            [](const Traced& a, const Traced& b) { return a.batch < b.batch; });
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i].batch == out[i - 1].batch)
      return fail(Code::usage, format("{} and {}: both of batch size {}", out[i - 1].trace->name,
                                      out[i].trace->name, out[i].batch));
  return out;
}

}  // namespace

std::string_view StepProgram::fact(std::string_view key) const {
  for (size_t i = facts.size(); i-- > 0;)
    if (texts[facts[i].key] == key) return texts[facts[i].value];
  return {};
}

bool StepProgram::is_traced(uint64_t batch) const {
  if (std::find(batches.begin(), batches.end(), batch) != batches.end()) return true;
  return std::any_of(apart.begin(), apart.end(),
                     [batch](const StepProgram& program) { return program.is_traced(batch); });
}

const StepProgram* StepProgram::at(uint64_t batch) const {
  for (const StepProgram& program : whole)
    if (program.is_traced(batch)) return &program;
  if (differences.empty()) return extrapolates() || is_traced(batch) ? this : nullptr;
  for (const StepProgram& program : apart)
    if (program.is_traced(batch)) return &program;
  return nullptr;
}

namespace {

std::vector<Difference> differences_of(const std::vector<Traced>& traces) {
  std::vector<Difference> out;
  for (size_t i = 1; i < traces.size(); ++i)
    if (std::optional<Difference> found = compare(traces.front(), traces[i]))
      out.push_back(std::move(*found));
  return out;
}

using Parts = std::vector<TraceEvents>;

std::optional<StepProgram> align_parts(std::vector<Traced> traces, const Parts& parts) {
  for (size_t i = 0; i < traces.size(); ++i) traces[i].trace = &parts[i];
  if (!differences_of(traces).empty()) return std::nullopt;
  return build_step_program(traces);
}

std::vector<const TraceEvents*> pointers(const Parts& parts) {
  std::vector<const TraceEvents*> out;
  for (const TraceEvents& part : parts) out.push_back(&part);
  return out;
}

// Where the steps are the same and what follows them or comes before them is not: the steps.
std::optional<StepProgram> align_steps(const std::vector<Traced>& traces) {
  Parts whole, steps;
  for (const Traced& traced : traces) {
    whole.push_back(*traced.trace);
    steps.push_back(steps_alone(*traced.trace));
  }
  const bool all_go_on = std::all_of(traces.begin(), traces.end(),
                                     [](const Traced& traced) { return goes_on(*traced.trace); });
  const bool in_order = !made_in_other_order(pointers(whole));
  std::optional<StepProgram> out =
      all_go_on && in_order ? align_parts(traces, steps) : std::nullopt;
  if (out) out->after_steps_left_out = true;
  for (const KeptSetup kept : {KeptSetup::common, KeptSetup::living})
    for (const Parts* parts : {&whole, &steps}) {
      if (out || (parts == &steps && !all_go_on)) continue;
      if (kept == KeptSetup::common && !in_order) continue;
      const std::optional<Parts> shortened = with_common_setup(pointers(*parts), kept);
      if (shortened) out = align_parts(traces, *shortened);
      if (!out) continue;
      out->setup_left_out = true;
      out->after_steps_left_out = parts == &steps;
    }
  return out;
}

}  // namespace

Result<StepProgram> align_as_traced(std::span<const TraceEvents> traces) {
  CUFIT_TRY(sorted, sorted_traces(traces));
  std::vector<Difference> differences = differences_of(sorted);
  CudnnAnswers cudnn;
  for (const Traced& traced : sorted) cudnn.add(*traced.trace);
  const auto as_they_are = [&sorted, &cudnn] {
    StepProgram out = build_step_program(sorted);
    out.cudnn = cudnn;
    return out;
  };
  std::vector<const TraceEvents*> each;
  for (const Traced& traced : sorted) each.push_back(traced.trace);
  if (differences.empty() && !made_in_other_order(each)) return as_they_are();
  std::vector<StepProgram> apart;
  for (const Traced& traced : sorted) {
    apart.push_back(build_step_program({&traced, 1}));
    apart.back().cudnn = cudnn;
  }
  if (std::optional<StepProgram> steps = align_steps(sorted)) {
    steps->cudnn = std::move(cudnn);
    steps->whole = std::move(apart);
    return std::move(*steps);
  }
  if (differences.empty()) return as_they_are();
  StepProgram out = apart.back();
  out.differences = std::move(differences);
  out.apart = std::move(apart);
  return out;
}

}  // namespace cufit::fit
