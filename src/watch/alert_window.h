// SPDX-License-Identifier: Apache-2.0
// One series over a window of time, as PromQL's increase(), rate(), avg_over_time(), min_over_time() and max_over_time() see
// it, in at most 122 buckets whatever the window and the number of samples: the window's begin is exact to a 120th of it.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "watch/alert_rules.h"

namespace cufit::watch {

class AlertWindow {
 public:
  // `take` is not `now`.
  AlertWindow(AlertTake take, double window_s) : take_(take), window_s_(window_s) {}

  // Times do not go back. A counter that falls was reset: it counts from 0, as in PromQL. The first sample of a counter is
  // where it begins, not an increase.
  void add(double time, double value);
  // Of the samples within the window before `now`; nothing where there are none. Of increase and rate: what was seen, without
  // PromQL's extrapolation to the window's ends, so that one error is 1 and not 1.1.
  std::optional<double> value(double now) const;
  // Samples have come since the window's begin, or earlier.
  bool is_covered(double now) const { return now - begun_ >= window_s_ * 0.99; }
  double newest() const { return newest_; }
  size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    double begin, end;  // times of its first and its last sample
    double amount;      // increase, sum, least or most
    double samples;
  };
  double amount_of(double value) const;

  AlertTake take_;
  double window_s_;
  double begun_ = 0, newest_ = 0, last_value_ = 0;
  bool is_empty_ = true;
  std::deque<Bucket> buckets_;
};

}  // namespace cufit::watch
