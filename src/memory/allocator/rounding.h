// SPDX-License-Identifier: Apache-2.0
// Sizes: what a request becomes, which pool serves it, how large a new segment is
// (DeviceCachingAllocator::round_size, get_pool, get_allocation_size).
#pragma once

#include <array>
#include <cstdint>

namespace cufit::memory {

constexpr uint64_t k_mib = 1u << 20;
constexpr uint64_t k_min_block_size = 512;          // kMinBlockSize: every size is a multiple
constexpr uint64_t k_small_size = 1 * k_mib;        // kSmallSize: largest of the small pool
constexpr uint64_t k_small_buffer = 2 * k_mib;      // kSmallBuffer: a segment of the small pool
constexpr uint64_t k_large_buffer = 20 * k_mib;     // kLargeBuffer: default large_segment_size
constexpr uint64_t k_min_large_alloc = 10 * k_mib;  // kMinLargeAlloc: from here own segments
constexpr uint64_t k_round_large = 2 * k_mib;       // kRoundLarge: and their granularity
constexpr uint64_t k_one_exa_bytes = uint64_t{1} << 60;  // kOneExaBytes: fails before any search

// One entry per power of two from 1 MiB; entry 0 also serves all below, entry 15 all above 32 GiB.
// 0 and 1: no rounding to powers of two.
using PowerOfTwoDivisions = std::array<uint64_t, 16>;

uint64_t roundup_power2_divisions(const PowerOfTwoDivisions& table, uint64_t size);
// `divisions` is a power of two of at least 2.
uint64_t roundup_power2_next_division(uint64_t size, uint64_t divisions);
uint64_t round_size(uint64_t size, const PowerOfTwoDivisions& table);
inline bool is_small_size(uint64_t rounded) { return rounded <= k_small_size; }
// Of a new cudaMalloc segment for a rounded request.
uint64_t get_allocation_size(uint64_t rounded, uint64_t large_segment_size);

inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
inline bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }
inline unsigned floor_log2(uint64_t value) {
  return 63 - static_cast<unsigned>(__builtin_clzll(value));
}

}  // namespace cufit::memory
