// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/rounding.h"

#include <algorithm>

namespace cufit::memory {

uint64_t roundup_power2_divisions(const PowerOfTwoDivisions& table, uint64_t size) {
  constexpr unsigned first = 20;  // log2 of 1 MiB
  const unsigned log2 = floor_log2(size | 1);
  const size_t index = log2 > first ? log2 - first : 0;
  return table[std::min(index, table.size() - 1)];
}

uint64_t roundup_power2_next_division(uint64_t size, uint64_t divisions) {
  if (is_power_of_two(size)) return size;
  const uint64_t floor = uint64_t{1} << floor_log2(size);
  const uint64_t step = floor >> floor_log2(divisions);
  if (step == 0) return floor << 1;
  return (size + step - 1) & ~(step - 1);
}

uint64_t round_size(uint64_t size, const PowerOfTwoDivisions& table) {
  if (size < k_min_block_size) return k_min_block_size;
  const uint64_t divisions = roundup_power2_divisions(table, size);
  if (divisions > 1 && size > k_min_block_size * divisions)
    return roundup_power2_next_division(size, divisions);
  return round_up(size, k_min_block_size);
}

uint64_t get_allocation_size(uint64_t rounded, uint64_t large_segment_size) {
  if (rounded <= k_small_size) return k_small_buffer;
  if (rounded < k_min_large_alloc) return large_segment_size;
  return round_up(rounded, k_round_large);
}

}  // namespace cufit::memory
