// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace cufit::resolve {
namespace {

constexpr double k_outside = 0.025;  // on each side, of 95 %
constexpr double k_still = 0.01;     // of warm-up blocks

// The largest k with P(fewer than k of n coins show heads) <= `outside`; 0: none.
size_t order_statistic(size_t n, double outside) {
  double term = std::pow(0.5, static_cast<double>(n)), sum = 0;  // 2^-n * C(n, i)
  size_t k = 0;
  while (k < n / 2) {
    sum += term;
    if (sum > outside) break;
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return k;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<Interval> median_interval(std::vector<double> values, size_t together) {
  // 2^-n is no longer a number beyond n = 1074; the command allows fewer rounds.
  if (values.size() < k_least_values || values.size() > 1000) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t k = order_statistic(values.size(),
                                   k_outside / static_cast<double>(std::max<size_t>(together, 1)));
  if (k == 0) return std::nullopt;
  return Interval{median_of(values), values[k - 1], values[values.size() - k]};
}

std::optional<Interval> ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                                       size_t together) {
  std::vector<double> ratios;
  for (size_t i = 0; i + 1 < std::min(a.size(), b.size()); i += 2) {
    const double square = (b[i] / a[i]) * (b[i + 1] / a[i + 1]);
    if (!std::isfinite(square) || square <= 0) return std::nullopt;
    ratios.push_back(std::sqrt(square));
  }
  return median_interval(std::move(ratios), together);
}

size_t comparisons_of(size_t sides) { return sides < 2 ? 1 : sides * (sides - 1) / 2; }

size_t rounds_for(size_t sides) {
  size_t values = k_least_values;
  const double outside = k_outside / static_cast<double>(comparisons_of(sides));
  while (order_statistic(values, outside) == 0) ++values;
  return 2 * values;
}

Difference difference_of(const Interval& ratio) {
  if (ratio.low > 1) return Difference::faster;
  return ratio.high < 1 ? Difference::slower : Difference::none;
}

bool is_steady(const std::vector<double>& seconds) {
  constexpr size_t k_part = 3;
  if (seconds.size() < 2 * k_part) return false;
  const auto last = seconds.end() - k_part, before = last - k_part;
  const double now = median_of({last, seconds.end()}), then = median_of({before, last});
  const auto [least, most] = std::minmax_element(before, last);
  return (now >= *least && now <= *most) || std::abs(now - then) <= k_still * then;
}

}  // namespace cufit::resolve
