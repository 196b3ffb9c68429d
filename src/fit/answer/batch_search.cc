// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/batch_search.h"

#include <algorithm>
#include <cmath>

namespace cufit::fit {
namespace {

// So near, a trace more tells little.
constexpr uint64_t k_near_part = 12;
// No trace goes further beyond, or below, what was traced.
constexpr uint64_t k_furthest = 4;
// What a line through two sizes is off by is on the side of those that do not fit.
constexpr double k_below_line = 0.97;
constexpr uint64_t k_highest = 1u << 20;
// Of a program that handles each sample apart the trace grows with the batch. So many take a minute
// or two.
constexpr double k_most_events = 400000;

// Where the line through two points meets the capacity.
std::optional<double> meets(const CurvePoint& low, const CurvePoint& high, double capacity) {
  const double bytes = double(high.peak_reserved_upper) - double(low.peak_reserved_upper);
  if (bytes <= 0) return std::nullopt;
  const double each = bytes / double(high.batch - low.batch);
  return double(low.batch) + (capacity - double(low.peak_reserved_upper)) / each;
}

}  // namespace

bool worth_its_work(uint64_t batch, std::span<const TraceLength> traced) {
  if (traced.empty()) return false;
  const auto [least, most] = std::minmax_element(
      traced.begin(), traced.end(),
      [](const TraceLength& a, const TraceLength& b) { return a.batch < b.batch; });
  const TraceLength low = *least, high = *most;
  double events = double(high.events);
  if (high.events > low.events && high.batch > low.batch && batch > high.batch)
    events += double(high.events - low.events) / double(high.batch - low.batch) *
              double(batch - high.batch);
  return events <= k_most_events;
}

std::optional<uint64_t> next_batch(std::span<const CurvePoint> points, uint64_t capacity) {
  if (points.size() < 2 || capacity == 0) return std::nullopt;
  uint64_t good = 0, bad = 0;  // 0: none known
  for (const CurvePoint& point : points) {
    if (point.fits) good = std::max(good, point.batch);
    if (!point.fits && (bad == 0 || point.batch < bad)) bad = point.batch;
  }
  if (bad != 0 && bad < good) return std::nullopt;
  if (bad != 0 && bad - good <= std::max<uint64_t>(1, good / k_near_part)) return std::nullopt;
  // The two around the capacity, or the two that are nearest to it.
  size_t high = 1;
  while (high + 1 < points.size() && points[high].batch < (bad != 0 ? bad : UINT64_MAX)) ++high;
  const std::optional<double> line =
      meets(points[high - 1], points[high], double(capacity) * k_below_line);
  const uint64_t lowest = good != 0 ? good + std::max<uint64_t>(1, good / k_near_part)
                                     : std::max<uint64_t>(1, points[0].batch / k_furthest);
  const uint64_t highest =
      bad != 0 ? bad - 1 : std::min(k_highest, points.back().batch * k_furthest);
  if (lowest > highest) return std::nullopt;
  // A step of a stair has no slope: on to the next, or to the middle.
  const double flat = bad != 0 ? double(good + bad) / 2 : 2.0 * double(points.back().batch);
  const double wanted = std::clamp(std::floor(line.value_or(flat)), double(lowest), double(highest));
  return static_cast<uint64_t>(wanted);
}

}  // namespace cufit::fit
