// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/forward_backward_passes.h"

#include <algorithm>

namespace cufit::analysis {

void add_turning_points(const std::vector<uint32_t>& counts, uint32_t begin,
                        std::vector<uint32_t>& out) {
  if (counts.empty()) return;
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  const uint32_t swing = std::max<uint32_t>(1, (*high - *low) / 2);
  bool rising = true;
  uint32_t top = counts[0], bottom = counts[0], top_at = 0;
  uint32_t lowest = counts[0];  // before the top
  for (uint32_t i = 0; i < counts.size(); ++i) {
    const uint32_t count = counts[i];
    if (rising) {
      if (count > top) {
        top = count;
        top_at = i;
      } else if (count + swing <= top) {
        out.push_back(begin + top_at);
        rising = false;
        bottom = count;
      }
    } else if (count < bottom) {
      bottom = count;
    } else if (count >= bottom + swing) {
      rising = true;
      lowest = bottom;
      top = count;
      top_at = i;
    }
  }
  if (rising && top >= lowest + swing) out.push_back(begin + top_at);
}

}  // namespace cufit::analysis
