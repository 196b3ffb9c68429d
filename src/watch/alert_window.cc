// SPDX-License-Identifier: Apache-2.0
#include "watch/alert_window.h"

#include <algorithm>

namespace cufit::watch {
namespace {

constexpr double k_buckets = 120;

bool is_counter(AlertTake take) { return take == AlertTake::increase || take == AlertTake::rate; }

}  // namespace

double AlertWindow::amount_of(double value) const {
  if (!is_counter(take_)) return value;
  return value < last_value_ ? value : value - last_value_;
}

void AlertWindow::add(double time, double value) {
  if (is_empty_) {
    begun_ = time;
    last_value_ = value;
  }
  is_empty_ = false;
  const double amount = amount_of(value);
  last_value_ = value;
  newest_ = time;
  while (!buckets_.empty() && buckets_.front().end <= time - window_s_) buckets_.pop_front();
  if (buckets_.empty() || time - buckets_.back().begin >= window_s_ / k_buckets) {
    buckets_.push_back({time, time, amount, 1});
    return;
  }
  Bucket& last = buckets_.back();
  last.end = time;
  last.samples += 1;
  if (take_ == AlertTake::min)
    last.amount = std::min(last.amount, amount);
  else if (take_ == AlertTake::max)
    last.amount = std::max(last.amount, amount);
  else
    last.amount += amount;
}

std::optional<double> AlertWindow::value(double now) const {
  double amount = 0, samples = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.end <= now - window_s_) continue;
    if (samples == 0 && !is_counter(take_) && take_ != AlertTake::avg)
      amount = bucket.amount;
    else if (take_ == AlertTake::min)
      amount = std::min(amount, bucket.amount);
    else if (take_ == AlertTake::max)
      amount = std::max(amount, bucket.amount);
    else
      amount += bucket.amount;
    samples += bucket.samples;
  }
  if (samples == 0) return std::nullopt;
  if (take_ == AlertTake::avg) return amount / samples;
  if (take_ == AlertTake::rate) return amount / window_s_;
  return amount;
}

}  // namespace cufit::watch
