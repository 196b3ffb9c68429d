// SPDX-License-Identifier: Apache-2.0
#include "watch/memory_series.h"

#include <algorithm>
#include <cmath>

namespace cufit::watch {
namespace {

constexpr double k_clock_was_set = 60;  // seconds backwards; less is jitter of who samples

MemoryPoint joined(const MemoryPoint& older, const MemoryPoint& newer) {
  return {older.begin, newer.end, std::min(older.min, newer.min), std::max(older.max, newer.max),
          newer.last};
}

}  // namespace

MemorySeries::MemorySeries(size_t points_per_level)
    : points_per_level_(std::max<size_t>(points_per_level, 2)), levels_(1) {}

void MemorySeries::add(double time, uint64_t bytes) {
  if (!std::isfinite(time)) return;
  if (!empty() && time <= end()) {
    if (end() - time < k_clock_was_set) return;
    clear();
  }
  if (empty()) begin_ = time;
  ++samples_;
  std::vector<MemoryPoint>& newest = levels_[0];
  const MemoryPoint sample = {time, time, bytes, bytes, bytes};
  // Half of the least distance of samples is left for jitter: samples that come each second are points of their own.
  if (!newest.empty() && time - newest.back().begin < k_point_seconds / 2) {
    newest.back() = joined(newest.back(), sample);
    return;
  }
  newest.push_back(sample);
  for (size_t level = 0; level < levels_.size() && levels_[level].size() > points_per_level_;
       ++level)
    make_room(level);
}

void MemorySeries::make_room(size_t level) {
  if (level + 1 == k_levels) {
    // Neighbours in pairs: half of the points, each twice as long. The newest stays as it is where their number is odd.
    std::vector<MemoryPoint> pairs;
    const std::vector<MemoryPoint>& old = levels_[level];
    for (size_t i = 0; i + 1 < old.size(); i += 2) pairs.push_back(joined(old[i], old[i + 1]));
    if (old.size() % 2 == 1) pairs.push_back(old.back());
    levels_[level] = std::move(pairs);
    return;
  }
  if (level + 1 == levels_.size()) levels_.emplace_back();
  std::vector<MemoryPoint>& full = levels_[level];
  levels_[level + 1].push_back(joined(full[0], full[1]));
  full.erase(full.begin(), full.begin() + 2);
}

void MemorySeries::clear() {
  levels_.assign(1, {});
  samples_ = 0;
}

double MemorySeries::end() const { return empty() ? 0 : levels_[0].back().end; }

uint64_t MemorySeries::last_bytes() const { return empty() ? 0 : levels_[0].back().last; }

size_t MemorySeries::size() const {
  size_t sum = 0;
  for (const std::vector<MemoryPoint>& level : levels_) sum += level.size();
  return sum;
}

std::vector<MemoryPoint> MemorySeries::points() const {
  std::vector<MemoryPoint> all;
  all.reserve(size());
  for (size_t level = levels_.size(); level-- > 0;)
    all.insert(all.end(), levels_[level].begin(), levels_[level].end());
  return all;
}

}  // namespace cufit::watch
