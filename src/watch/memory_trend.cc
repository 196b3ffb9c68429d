// SPDX-License-Identifier: Apache-2.0
#include "watch/memory_trend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace cufit::watch {
namespace {

// Thresholds were chosen on tests/unit/watch/development_runs.cc, and judged on other runs.

// Loading a model takes a minute, and is a growth at one rate; the first dozens of steps of varying length set a record
// every few seconds. Nothing is named before this, and no growth that is younger.
constexpr double k_min_seconds = 120;
// Records of the beginning are no measure for what comes: weights that are there twice, algorithms that are tried.
constexpr double k_warm_up = 1.0 / 8;  // of what was seen
// A window is looked at in so many parts of equal length.
constexpr size_t k_parts = 8;
constexpr size_t k_min_points = k_parts + 1;
// How far a growth is extrapolated, in multiples of itself (a leak is at half of its way at 1): the longer it went on at one
// rate, the further. 3 after two minutes, 6 after half an hour, 8 after 100 minutes.
constexpr double k_reach = 3, k_reach_most = 8;
// Growth from the first sample on may be a model or data on their way to the card. For half an hour it is named only
// shortly before half of its way, and not in the first minutes.
constexpr double k_reach_from_start = 1.3;
constexpr double k_min_from_start = 150, k_loading_seconds = 1800;

// A curve over time since the warm-up, at the ends of the points of the series; it never falls. Bytes are relative to its
// first ones.
struct Curve {
  std::vector<double> times, bytes;
  double above_first = 0;  // bytes of its first less those of the first sample

  double at(double time) const {
    const size_t after =
        static_cast<size_t>(std::upper_bound(times.begin(), times.end(), time) - times.begin());
    return after == 0 ? bytes.front() : bytes[after - 1];
  }
};

struct Rise {
  double time = 0;
  double bytes = 0;
};

struct Growth {
  double begin = 0;  // of the window
  double bytes = 0;  // by which the curve rose in it
  double slope = 0;  // bytes per second
  double slope_low = 0, slope_high = 0;
  double jump = 0;  // bytes by which it rises at a time
  // What is still to come if each half of a window brings as much less than the one before as the second did: INFINITY
  // where it brought no less.
  double to_come = INFINITY;
  double next_jump = 0;  // stairs: seconds to the next one after the last sample
  double every = 0;      // stairs: seconds from one to the next; else 0
};

size_t first_since(const std::vector<MemoryPoint>& points, double since) {
  size_t i = 0;
  while (i + 1 < points.size() && points[i].end < since) ++i;
  return i;
}

Curve curve_of(const std::vector<MemoryPoint>& points, size_t first,
               const std::vector<uint64_t>& bytes) {
  Curve out;
  out.above_first = static_cast<double>(bytes[0]) - static_cast<double>(points[0].min);
  for (size_t i = first; i < points.size(); ++i) {
    out.times.push_back(points[i].end);
    out.bytes.push_back(static_cast<double>(bytes[i - first] - bytes[0]));
  }
  return out;
}

// The largest so far.
Curve record_of(const std::vector<MemoryPoint>& points, size_t first) {
  std::vector<uint64_t> bytes;
  for (size_t i = first; i < points.size(); ++i)
    bytes.push_back(std::max(bytes.empty() ? 0 : bytes.back(), points[i].max));
  return curve_of(points, first, bytes);
}

// The smallest from then on: what is never given back.
Curve floor_of(const std::vector<MemoryPoint>& points, size_t first) {
  std::vector<uint64_t> bytes(points.size() - first);
  uint64_t least = UINT64_MAX;
  for (size_t i = points.size(); i-- > first;)
    bytes[i - first] = least = std::min(least, points[i].min);
  return curve_of(points, first, bytes);
}

double variation(const std::vector<double>& values) {  // deviation over mean
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return mean > 0 ? std::sqrt(squares / count) / mean : INFINITY;
}

// Theil-Sen over the ends of the parts: the median of the slopes of pairs; a few parts that rise otherwise move it little.
// Only pairs that are half of the window or more apart: the others tell of single jumps.
void fit_slope(const std::vector<double>& at_ends, double part_seconds, Growth& growth) {
  std::vector<double> slopes;
  const size_t apart = (at_ends.size() - 1) / 2;
  for (size_t i = 0; i < at_ends.size(); ++i)
    for (size_t j = i + apart; j < at_ends.size(); ++j)
      slopes.push_back((at_ends[j] - at_ends[i]) / (static_cast<double>(j - i) * part_seconds));
  std::sort(slopes.begin(), slopes.end());
  const auto quantile = [&](double share) {
    return slopes[static_cast<size_t>(share * static_cast<double>(slopes.size() - 1) + 0.5)];
  };
  growth.slope = quantile(0.5);
  growth.slope_low = std::max(quantile(0.05), growth.slope / 4);
  growth.slope_high = quantile(0.95);
}

// Whether the curve rises evenly from `begin` to `end`: in nearly all parts, in none by far the most, no more slowly
// towards the end, and near to a straight line all the way.
std::optional<Growth> even_growth(const Curve& curve, double begin, double end) {
  const double part = (end - begin) / k_parts;
  std::vector<double> at_ends, gains;
  for (size_t i = 0; i <= k_parts; ++i)
    at_ends.push_back(curve.at(begin + part * static_cast<double>(i)));
  const double total = at_ends.back() - at_ends.front();
  if (!(total > 0)) return std::nullopt;
  size_t still = 0;
  double largest = 0, off = 0;
  for (size_t i = 0; i < k_parts; ++i) {
    const double gain = at_ends[i + 1] - at_ends[i];
    if (gain < total / k_parts / 8) ++still;
    gains.push_back(gain);
    largest = std::max(largest, gain);
    const double straight = total * static_cast<double>(i + 1) / k_parts;
    off = std::max(off, std::abs(at_ends[i + 1] - at_ends[0] - straight));
  }
  if (still > 1 || largest > total * 0.3 || off > total * 0.15) return std::nullopt;
  const double first_half = at_ends[k_parts / 2] - at_ends.front();
  const double second_half = total - first_half;
  if (second_half < 0.72 * first_half || second_half > 2.5 * first_half) return std::nullopt;
  // The last part alone: a growth that has ended is none.
  if (curve.bytes.back() - curve.at(end - part * 1.5) < total / k_parts / 2) return std::nullopt;
  Growth out;
  if (second_half < first_half)  // a geometric series
    out.to_come = second_half * second_half / (first_half - second_half);
  out.begin = begin;
  out.bytes = total;
  fit_slope(at_ends, part, out);
  // Two deviations of the mean gain of a part: jumps that come by chance.
  const double spread = 1 + 2 * variation(gains) / std::sqrt(static_cast<double>(k_parts));
  out.slope_low = std::min(out.slope_low, out.slope / spread);
  out.slope_high = std::max(out.slope_high, out.slope * spread);
  out.jump = largest;
  return out;
}

// Rises of the curve in the window; those that follow each other at once are one.
std::vector<Rise> rises_of(const Curve& curve, double begin, double end) {
  std::vector<Rise> out;
  const double together = (end - begin) / 24;  // as far as the series resolves
  double last = 0;
  for (size_t i = 1; i < curve.times.size(); ++i) {
    const double bytes = curve.bytes[i] - curve.bytes[i - 1];
    if (bytes <= 0 || curve.times[i] <= begin) continue;
    if (!out.empty() && curve.times[i] - last <= together)
      out.back().bytes += bytes;
    else
      out.push_back({curve.times[i], bytes});
    last = curve.times[i];
  }
  return out;
}

// Few large jumps, as of a leak once per epoch: alike in size and in distance.
std::optional<Growth> stairs(const Curve& curve, double begin, double end) {
  const std::vector<Rise> rises = rises_of(curve, begin, end);
  if (rises.size() < 4) return std::nullopt;
  std::vector<double> distances, sizes;
  for (size_t i = 0; i < rises.size(); ++i) {
    sizes.push_back(rises[i].bytes);
    if (i > 0) distances.push_back(rises[i].time - rises[i - 1].time);
  }
  const double uneven_distances = variation(distances), uneven_sizes = variation(sizes);
  // Few rises are alike by chance more often.
  const double bound = rises.size() < 6 ? 0.2 : 0.3;
  if (uneven_distances > bound || uneven_sizes > bound) return std::nullopt;
  Growth out;
  out.every = (rises.back().time - rises.front().time) / static_cast<double>(distances.size());
  const double since = end - rises.back().time;
  if (since > 1.6 * out.every) return std::nullopt;
  out.next_jump = std::max(0.0, out.every - since);
  out.begin = rises.front().time;
  out.bytes = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  out.jump = out.bytes / static_cast<double>(sizes.size());
  out.slope = out.jump / out.every;
  // Two deviations of the mean of both.
  const double spread =
      2 * std::sqrt((uneven_distances * uneven_distances + uneven_sizes * uneven_sizes) /
                    static_cast<double>(distances.size()));
  out.slope_low = out.slope / (1 + spread);
  out.slope_high = out.slope * (1 + spread);
  return out;
}

// Heights that vary set records too, and a tooth of a saw rises to its tip: where one curve rises, the other does.
bool rises_too(const Curve& other, const Growth& growth, double end) {
  const double middle = (growth.begin + end) / 2;
  return other.at(end) - other.at(middle) >= growth.bytes * 0.15 &&
         other.at(middle) - other.at(growth.begin) >= growth.bytes * 0.15;
}

// Whether all of the memory came at the rate of `growth`: a line back to the first sample meets what was there.
bool from_start(const Growth& growth, const Curve& curve, double series_begin) {
  const double before = growth.slope * (growth.begin - series_begin);
  const double was = curve.above_first + curve.at(growth.begin);
  return std::abs(was - before) <= before * 0.15 + growth.jump / 2;
}

bool is_enough(const Growth& growth, const Curve& curve, double series_begin, double end,
               double free) {
  const double seconds = end - growth.begin;
  if (seconds < k_min_seconds * (1 - k_warm_up)) return false;
  double reach = std::min(k_reach * std::pow(seconds / k_min_seconds, 0.25), k_reach_most);
  if (seconds < k_loading_seconds && from_start(growth, curve, series_begin)) {
    if (end - series_begin < k_min_from_start) return false;
    reach = k_reach_from_start;
  }
  // Growth that gets slower ends before the card is full, or says so later.
  return free <= growth.bytes * reach && free <= growth.to_come;
}

MemoryTrend named(const Growth& growth, double free) {
  MemoryTrend out;
  out.state = MemoryTrend::State::growing;
  out.slope_bytes_per_s = growth.slope;
  out.grows_since = growth.begin;
  if (growth.every > 0) {  // the first jump that does not fit
    const double jumps = std::floor(free / growth.jump);
    out.full_in_s = growth.next_jump + jumps * growth.every;
  } else {
    out.full_in_s = free / growth.slope;
  }
  const double jump = growth.jump / growth.slope;  // in seconds
  out.full_in_s_early = std::max(0.0, *out.full_in_s * growth.slope / growth.slope_high - jump);
  out.full_in_s_late = *out.full_in_s * growth.slope / growth.slope_low + jump;
  return out;
}

}  // namespace

MemoryTrend memory_trend(const MemorySeries& series, uint64_t free_bytes_on_card) {
  MemoryTrend out;
  const double end = series.end();
  const double seen = end - series.begin();
  const std::vector<MemoryPoint> points = series.points();
  if (points.size() < k_min_points || seen < k_min_seconds) return out;
  const double free = static_cast<double>(free_bytes_on_card);
  const size_t first = first_since(points, series.begin() + seen * k_warm_up);
  const Curve record = record_of(points, first), floor = floor_of(points, first);
  const double shortest =
      std::max(k_min_seconds * (1 - k_warm_up), end - points[points.size() - k_min_points].end);
  // From all that was seen down to the last minutes: a leak that begins late is seen in a window that does. How much is still
  // to come shows best in a long window: in a short one the series' steps hide that it gets less.
  double to_come = INFINITY;
  for (double window = seen * (1 - k_warm_up); window >= shortest; window *= 0.85)
    for (const auto& rule : {even_growth, stairs})
      for (const Curve* curve : {&record, &floor}) {
        std::optional<Growth> growth = rule(*curve, end - window, end);
        if (!growth || !rises_too(curve == &record ? floor : record, *growth, end)) continue;
        growth->to_come = to_come = std::min(to_come, growth->to_come);
        if (is_enough(*growth, *curve, series.begin(), end, free)) return named(*growth, free);
      }
  const bool rises = record.bytes.back() > record.at(end - seen / 2);
  out.state = rises ? MemoryTrend::State::stepping : MemoryTrend::State::steady;
  if (!rises) out.slope_bytes_per_s = 0;
  return out;
}

}  // namespace cufit::watch
