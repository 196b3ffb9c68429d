// SPDX-License-Identifier: Apache-2.0
// How long the traces of a program still take, as far as their own pace tells.
#pragma once

#include <cstdint>
#include <optional>

namespace cufit::commands {

class TimeLeft {
 public:
  // A trace of so many steps begins; `last`: no other follows it.
  void begin(uint64_t steps, bool last);
  // So many of its steps were done after so many seconds. Whether it is time to say so.
  bool saw(double seconds, uint64_t done);
  // Of this trace and the one behind it, in seconds. Nothing before two steps of the first trace
  // are done, nor where another takes longer than that one did.
  std::optional<double> left() const;

 private:
  void count(uint64_t done);

  double seconds_ = 0;  // of this trace, so far
  double told_ = 0;
  uint64_t steps_ = 0, done_ = 0;
  bool last_ = false;
  double first_done_ = 0, last_done_ = 0;  // seconds
  uint64_t first_count_ = 0;
  std::optional<double> before_;  // what the trace before took
};

// The same of many traces, each of which takes as long as those before it did.
class TracesLeft {
 public:
  void took(double seconds) { seconds_ += seconds, ++count_; }
  // `traces` of them in all, so many at once, for so many seconds so far. Nothing before the first
  // took its time.
  std::optional<double> left(uint64_t traces, uint64_t at_once, double so_far) const;

 private:
  double seconds_ = 0;
  uint64_t count_ = 0;
};

}  // namespace cufit::commands
