// SPDX-License-Identifier: Apache-2.0
// The walk along a program's requests says what the lifetimes of its blocks add up to.
#include "memory/analysis/allocated_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "traces.h"

namespace cufit::analysis {
namespace allocated_walk_test {

// After each event, from the rows alone.
std::vector<uint64_t> sums_of_rows(const Lifetimes& lifetimes) {
  std::vector<uint64_t> bytes(lifetimes.events);
  for (const Lifetime& row : lifetimes.rows) {  // changes first, modulo 2^64
    bytes[row.alloc_event == k_before ? 0 : row.alloc_event] += row.block_bytes;
    if (row.free_requested < lifetimes.events) bytes[row.free_requested] -= row.block_bytes;
  }
  for (size_t i = 1; i < bytes.size(); ++i) bytes[i] += bytes[i - 1];
  return bytes;
}

TEST(AllocatedWalk, IsTheSumOfWhatLives) {
  std::mt19937 random(5);
  for (const char* name : k_all_traces) {
    SCOPED_TRACE(name);
    const TestTrace& trace = real_trace(name);
    const Lifetimes lifetimes = lifetimes_of(trace.snapshot, trace.verified);
    const std::vector<uint64_t> sums = sums_of_rows(lifetimes);
    AllocatedWalk walk(*trace.verified.program, lifetimes);
    for (uint32_t event = 0; event < lifetimes.events; event += 1 + random() % 5)
      ASSERT_EQ(walk.to(event), sums[event]) << event;
    AllocatedWalk peaks(*trace.verified.program, lifetimes);
    for (uint32_t begin = 0; begin < lifetimes.events;) {
      const auto room = lifetimes.events - begin;
      const uint32_t end = begin + 1 + static_cast<uint32_t>(random() % std::min(room, 900u));
      const auto highest = std::max_element(sums.begin() + begin, sums.begin() + end);
      const AllocatedWalk::Peak peak = peaks.highest(begin, end);
      ASSERT_EQ(peak.bytes, *highest) << begin;
      ASSERT_EQ(peak.event, static_cast<uint32_t>(highest - sums.begin())) << begin;
      begin = end;
    }
  }
}

}  // namespace allocated_walk_test
}  // namespace cufit::analysis
