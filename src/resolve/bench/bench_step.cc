// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/bench_step.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/format.h"

namespace cufit::resolve {
namespace {

using Kind = BenchStep::Kind;

// A difference below this is no reason to change anything.
constexpr double k_matters = 0.05;

// What a run is known by: the environment, or the precision where there is one environment.
struct Side {
  size_t environment = 0;
  std::string precision;
  bool operator<(const Side& other) const {
    return environment != other.environment ? environment < other.environment
                                            : precision < other.precision;
  }
  bool operator==(const Side&) const = default;
};

bool is_living(const BenchEnvironment& env) { return env.trouble.kind.empty(); }

bool any_rate(const BenchMeasurement& result) {
  for (const BenchCase& one : result.cases)
    for (const BenchRun& run : one.runs)
      if (run.rate) return true;
  return false;
}

std::optional<BenchStep> of_environments(const BenchMeasurement& result) {
  for (size_t i = 0; i < result.environments.size(); ++i) {
    const BenchEnvironment& env = result.environments[i];
    if (is_living(env)) continue;
    return BenchStep{env.trouble.kind == "not_created" ? Kind::create : Kind::doctor, i, {}, {}, 0};
  }
  return std::nullopt;
}

bool raised_everywhere(const BenchCase& one) {
  return std::all_of(one.runs.begin(), one.runs.end(), [](const BenchRun& run) {
    return run.trouble.kind == "failed" || run.trouble.kind == "workload";
  });
}

// A precision that the device has not is nothing to act on.
std::optional<BenchStep> of_runs(const BenchMeasurement& result) {
  std::optional<BenchStep> out;
  for (const BenchCase& one : result.cases)
    for (const BenchRun& run : one.runs) {
      const std::string& kind = run.trouble.kind;
      if (kind.empty() || kind == "precision" || kind == "interrupted") continue;
      const bool file = ends_with(one.workload, ".py");
      if (kind == "workload" || (file && raised_everywhere(one)))
        return BenchStep{Kind::mend_file, run.environment, {}, one.workload, 0};
      if (kind != "oom") return BenchStep{Kind::doctor, run.environment, {}, {}, 0};
      if (!out) out = BenchStep{Kind::smaller_batch, run.environment, {}, {}, 0};
    }
  return out;
}

Side side_of(const BenchRun& run, bool by_precision) {
  return {run.environment, by_precision ? run.precision : std::string()};
}

// The sides that no case has beaten, and of each whether it was alone the fastest in one.
std::optional<Side> winner(const BenchMeasurement& result, bool by_precision, bool& depends) {
  std::set<Side> unbeaten, alone;
  bool first = true;
  for (const BenchCase& one : result.cases) {
    if (one.comparisons.empty()) continue;
    std::set<Side> fastest;
    for (const size_t i : fastest_of(one)) fastest.insert(side_of(one.runs[i], by_precision));
    if (fastest.size() == 1) alone.insert(*fastest.begin());
    std::set<Side> both;
    for (const Side& side : fastest)
      if (first || unbeaten.count(side) > 0) both.insert(side);
    unbeaten = std::move(both);
    first = false;
  }
  depends = alone.size() > 1 || (!alone.empty() && unbeaten.count(*alone.begin()) == 0);
  if (depends || alone.empty()) return std::nullopt;
  return *alone.begin();
}

// The file ranks wheels: of a GPU, and two different ones were compared.
bool ranks(const BenchMeasurement& result) {
  const auto gpu = [&](size_t env) { return result.environments[env].hello.gpu.has_value(); };
  for (const BenchCase& one : result.cases)
    for (const BenchComparison& two : one.comparisons) {
      const size_t a = one.runs[two.base].environment, b = one.runs[two.other].environment;
      if (gpu(a) && gpu(b) &&
          result.environments[a].hello.torch != result.environments[b].hello.torch)
        return true;
    }
  return false;
}

// The largest difference that an interval around "none" leaves room for.
double hidden_by_noise(const BenchMeasurement& result) {
  double out = 0;
  for (const BenchCase& one : result.cases)
    for (const BenchComparison& two : one.comparisons)
      if (two.difference == Difference::none)
        out = std::max({out, two.ratio.high - 1, 1 / two.ratio.low - 1});
  return out;
}

bool has_comparison(const BenchMeasurement& result) {
  return std::any_of(result.cases.begin(), result.cases.end(),
                     [](const BenchCase& one) { return !one.comparisons.empty(); });
}

}  // namespace

BenchStep next_step(const BenchMeasurement& result, bool has_file) {
  if (const auto step = of_environments(result)) return *step;
  if (const auto step = of_runs(result)) return *step;
  if (!any_rate(result)) return {Kind::doctor, 0, {}, {}, 0};
  if (!result.neighbours.empty()) return {Kind::neighbours, 0, {}, {}, 0};
  if (has_file && ranks(result)) return {Kind::rank, 0, {}, {}, 0};
  if (!has_comparison(result)) return {Kind::other, 0, {}, {}, 0};
  const bool by_precision = result.environments.size() == 1;
  bool depends = false;
  if (const std::optional<Side> best = winner(result, by_precision, depends))
    return {
        by_precision ? Kind::use_precision : Kind::use, best->environment, best->precision, {}, 0};
  if (depends) return {Kind::depends, 0, {}, {}, 0};
  const double hidden = hidden_by_noise(result);
  if (hidden > k_matters) return {Kind::longer, 0, {}, {}, hidden};
  return {};
}

}  // namespace cufit::resolve
