// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/time_left.h"

#include <algorithm>

namespace cufit::commands {
namespace {

constexpr double k_told_seconds = 30;  // between two lines of where the program is

}  // namespace

void TimeLeft::begin(uint64_t steps, bool last) {
  if (seconds_ > 0) before_ = seconds_;
  seconds_ = told_ = first_done_ = last_done_ = 0;
  steps_ = steps;
  done_ = first_count_ = 0;
  last_ = last;
}

bool TimeLeft::saw(double seconds, uint64_t done) {
  seconds_ = seconds;
  if (done != done_) count(done);
  if (seconds - told_ < k_told_seconds) return false;
  told_ = seconds;
  return true;
}

void TimeLeft::count(uint64_t done) {
  const double seconds = seconds_;
  if (done_ == 0) {
    first_done_ = seconds;
    first_count_ = done;
  }
  done_ = done;
  last_done_ = seconds;
}

std::optional<double> TimeLeft::left() const {
  if (before_) {
    if (seconds_ >= *before_) return std::nullopt;
    return *before_ - seconds_;
  }
  if (done_ <= first_count_) return std::nullopt;
  const double each = (last_done_ - first_done_) / static_cast<double>(done_ - first_count_);
  // One step more is traced behind what follows the others.
  const uint64_t all = steps_ + 1;
  double rest = done_ < all ? each * static_cast<double>(all - done_) - (seconds_ - last_done_) : 0;
  if (rest < 0) rest = 0;
  return last_ ? rest : rest + seconds_ + rest;
}

std::optional<double> TracesLeft::left(uint64_t traces, uint64_t at_once, double so_far) const {
  if (count_ == 0) return std::nullopt;
  const uint64_t rounds = (traces + at_once - 1) / std::max<uint64_t>(at_once, 1);
  const double each = seconds_ / static_cast<double>(count_);
  const double behind = each * static_cast<double>(rounds > 0 ? rounds - 1 : 0);
  return behind + std::max(0.0, rounds > 0 ? each - so_far : 0);
}

}  // namespace cufit::commands
