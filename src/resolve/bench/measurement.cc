// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/measurement.h"

#include <algorithm>

namespace cufit::resolve {
namespace {

std::vector<double> rates_of(const BenchRun& run) {
  std::vector<double> out;
  for (const formats::BenchBlock& block : run.blocks)
    out.push_back(static_cast<double>(block.calls) * run.loaded.items / block.seconds);
  return out;
}

// [a][b]: a is faster than b, or than one that is faster than b, and so on. In noise there may be circles.
std::vector<std::vector<bool>> beaten_by(const BenchCase& one) {
  const size_t count = one.runs.size();
  std::vector<std::vector<bool>> out(count, std::vector<bool>(count));
  for (const BenchComparison& two : one.comparisons) {
    if (two.difference == Difference::faster) out[two.other][two.base] = true;
    if (two.difference == Difference::slower) out[two.base][two.other] = true;
  }
  for (size_t through = 0; through < count; ++through)
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < count; ++b)
        if (out[a][through] && out[through][b]) out[a][b] = true;
  return out;
}

BenchComparison turned(const BenchComparison& one) {
  BenchComparison out{one.other, one.base, {}, Difference::none};
  out.ratio = {1 / one.ratio.middle, 1 / one.ratio.high, 1 / one.ratio.low};
  out.difference = difference_of(out.ratio);
  return out;
}

}  // namespace

std::optional<uint64_t> reserved_bytes(const BenchRun& run) {
  std::optional<uint64_t> most;
  for (const formats::BenchBlock& block : run.blocks)
    if (block.reserved) most = std::max(most.value_or(0), *block.reserved);
  return most;
}

void judge(BenchCase& one) {
  for (BenchRun& run : one.runs)
    run.rate = run.trouble.kind.empty() ? median_interval(rates_of(run)) : std::nullopt;
  one.comparisons.clear();
  const size_t measured = static_cast<size_t>(std::count_if(
      one.runs.begin(), one.runs.end(), [](const BenchRun& run) { return run.rate.has_value(); }));
  const size_t together = comparisons_of(measured);
  for (size_t base = 0; base < one.runs.size(); ++base)
    for (size_t other = base + 1; other < one.runs.size(); ++other) {
      if (!one.runs[base].rate || !one.runs[other].rate) continue;
      const auto ratio =
          ratio_interval(rates_of(one.runs[base]), rates_of(one.runs[other]), together);
      if (ratio) one.comparisons.push_back({base, other, *ratio, difference_of(*ratio)});
    }
}

std::optional<BenchComparison> comparison_of(const BenchCase& one, size_t base, size_t other) {
  for (const BenchComparison& comparison : one.comparisons) {
    if (comparison.base == base && comparison.other == other) return comparison;
    if (comparison.base == other && comparison.other == base) return turned(comparison);
  }
  return std::nullopt;
}

std::vector<size_t> fastest_of(const BenchCase& one) {
  const std::vector<std::vector<bool>> beats = beaten_by(one);
  std::vector<size_t> out;
  for (size_t i = 0; i < one.runs.size(); ++i) {
    bool beaten = !one.runs[i].rate;
    for (size_t other = 0; other < one.runs.size() && !beaten; ++other)
      beaten = beats[other][i] && !beats[i][other];
    if (!beaten) out.push_back(i);
  }
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) {
    return one.runs[a].rate->middle > one.runs[b].rate->middle;
  });
  return out;
}

}  // namespace cufit::resolve
