// SPDX-License-Identifier: Apache-2.0
// Whether the memory of one process grows, and when the card will be full of it. Pure: samples in, a verdict out.
//
// What is judged is the record, the largest that the process has held so far: an allocator keeps what it once took, so peaks
// of a validation and a cache that is emptied and filled again are no growth. A record that rises is a leak where it rises
// at about one rate to the end; sizes that vary set records ever more rarely. Not seen from outside: a leak that fills what
// the allocator keeps free. It shows when that is used up.
#pragma once

#include <cstdint>
#include <optional>

#include "watch/memory_series.h"

namespace cufit::watch {

struct MemoryTrend {
  enum class State {
    too_short,  // less than two minutes, or less than nine samples
    steady,     // no new record in the later half
    stepping,   // records rise, not as a leak does, or not for long enough to say so
    growing,    // at one rate: the only state for an alarm
  };
  State state = State::too_short;
  std::optional<double> slope_bytes_per_s;  // growing: above 0; steady: 0
  // Seconds after the last sample, growing only: early <= full <= late.
  std::optional<double> full_in_s, full_in_s_early, full_in_s_late;
  std::optional<double> grows_since;  // growing: time of the first sample that the slope is of
};

// `free_bytes_on_card`: what the process can still get, at the time of the last sample. The less is left of the way to
// there, the less has to be extrapolated, and the sooner a growth is named.
MemoryTrend memory_trend(const MemorySeries& series, uint64_t free_bytes_on_card);

}  // namespace cufit::watch
