// SPDX-License-Identifier: Apache-2.0
// What one process held on one GPU over time, in constant memory: recent samples as they came, older ones as the smallest
// and the largest of an interval, which grows with age. memory_trend.h reads it; who samples is not its business.
//
// A ring of points per level. A point of level 0 is the samples of at most k_point_seconds; where a level is full, its two
// oldest points become one of the next level. So the interval of a point is at most about 1/24 of its age, and a leak that
// began minutes ago is seen beside days of history. The last level joins its own points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cufit::watch {

struct MemoryPoint {
  double begin = 0, end = 0;  // seconds: of its first and last sample
  uint64_t min = 0, max = 0;  // bytes
  uint64_t last = 0;          // bytes at `end`
};

class MemorySeries {
 public:
  static constexpr double k_point_seconds = 1;
  static constexpr size_t k_points_per_level = 24;
  static constexpr size_t k_levels = 13;  // 24 x 2^12 points of level 0: 28 hours at 1 s

  // `points_per_level`, at least 2: the tests ask with more whether thinning matters.
  explicit MemorySeries(size_t points_per_level = k_points_per_level);

  // O(1) amortised. `time`: seconds of any clock. A sample that is not later than the last one is left out; one that is a
  // minute or more earlier says that the clock was set, and begins the series anew.
  void add(double time, uint64_t bytes);
  void clear();

  bool empty() const { return samples_ == 0; }
  uint64_t samples() const { return samples_; }
  double begin() const { return begin_; }   // of the first sample, though it is thinned
  double end() const;                       // of the last sample; 0 where there is none
  uint64_t last_bytes() const;              // 0 where there is none
  size_t size() const;                      // points, at most levels x points per level
  std::vector<MemoryPoint> points() const;  // oldest first

 private:
  void make_room(size_t level);

  size_t points_per_level_;
  std::vector<std::vector<MemoryPoint>> levels_;  // each oldest first; [0] is the newest
  uint64_t samples_ = 0;
  double begin_ = 0;
};

}  // namespace cufit::watch
