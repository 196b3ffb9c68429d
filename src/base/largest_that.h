// SPDX-License-Identifier: Apache-2.0
// Binary search over whole numbers.
#pragma once

#include <cstdint>

namespace cufit {

// The largest value from 1 to `most` for which `holds`, 0 where 1 does not. What holds for a value
// holds for each below it.
template <class Holds>
uint64_t largest_that(uint64_t most, const Holds& holds) {
  if (most == 0 || !holds(uint64_t{1})) return 0;
  uint64_t low = 1, high = most;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (holds(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

}  // namespace cufit
