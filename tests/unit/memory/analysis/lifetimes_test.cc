// SPDX-License-Identifier: Apache-2.0
// Laws of the rows, on every real trace.
#include "memory/analysis/lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "traces.h"

namespace cufit::analysis {
namespace lifetimes_test {

TEST(Lifetimes, ExactOnWholeTraces) {
  for (const char* name : k_all_traces) {
    const TestTrace& trace = real_trace(name);
    if (trace.lifetimes.initial == 0) {
      EXPECT_TRUE(trace.lifetimes.sizes_are_exact) << name;
    }
    EXPECT_EQ(trace.lifetimes.events, trace.verified.event_count());
  }
}

// At the end the rows are the blocks of the snapshot's segments, to the byte.
TEST(Lifetimes, EndAsTheSegmentsSay) {
  for (const char* name : k_all_traces) {
    SCOPED_TRACE(name);
    const TestTrace& trace = real_trace(name);
    std::map<uint64_t, const memory::Block*> blocks;
    for (const memory::Segment& segment : trace.snapshot.segments)
      for (const memory::Block& block : segment.blocks)
        if (block.state != memory::BlockState::inactive) blocks[block.address] = &block;
    const uint32_t last = trace.lifetimes.events - 1;
    size_t live = 0;
    for (const Lifetime& row : trace.lifetimes.rows) {
      if (!is_allocated(row, last) && !is_pending(row, last)) continue;
      ++live;
      const auto found = blocks.find(row.address);
      ASSERT_NE(found, blocks.end());
      EXPECT_EQ(found->second->size, row.block_bytes);
      EXPECT_EQ(found->second->requested_size, row.requested_bytes);
      EXPECT_EQ(found->second->state == memory::BlockState::active_pending_free,
                is_pending(row, last));
    }
    EXPECT_EQ(live, blocks.size());
  }
}

// The highest sum of live rows is what torch measured as its peak (runs.jsonl).
TEST(Lifetimes, PeakAsMeasured) {
  const struct {
    const char* name;
    uint64_t peak;
  } runs[] = {{"cnn", 819127808},           {"varlen", 2003719168},
              {"accum", 1458681344},        {"amp", 2014216192},
              {"graphs", 720336896},        {"streams", 435404800},
              {"lora", 704770560},          {"varlen-expandable", 1992492032},
              {"amp-roundup4", 2162678272}, {"streams-split64", 461750272}};
  for (const auto& run : runs) {
    const Lifetimes& lifetimes = real_trace(run.name).lifetimes;
    std::vector<int64_t> change(lifetimes.events + 1);
    for (const Lifetime& row : lifetimes.rows) {
      const auto bytes = static_cast<int64_t>(row.block_bytes);
      change[row.alloc_event == k_before ? 0 : row.alloc_event] += bytes;
      if (row.free_requested != k_never) change[row.free_requested] -= bytes;
    }
    int64_t now = 0, peak = 0;
    for (const int64_t by : change) peak = std::max(peak, now += by);
    EXPECT_EQ(static_cast<uint64_t>(peak), run.peak) << run.name;
  }
}

TEST(Lifetimes, EventsAreInOrderAndOfTheRow) {
  for (const char* name : k_all_traces) {
    const TestTrace& trace = real_trace(name);
    uint32_t before = 0;
    for (const Lifetime& row : trace.lifetimes.rows) {
      ASSERT_LE(row.free_requested, row.free_completed) << name;
      const auto is_of = [&](uint32_t event, memory::Action action) {
        const memory::TraceEvent& at = trace.snapshot.events[event];
        return at.action == action && at.address == row.address;
      };
      if (row.alloc_event != k_before) {
        ASSERT_LT(row.alloc_event, row.free_requested) << name;
        ASSERT_GE(row.alloc_event, before) << name;
        before = row.alloc_event;
        ASSERT_TRUE(is_of(row.alloc_event, memory::Action::alloc)) << name;
        ASSERT_GE(row.block_bytes, row.requested_bytes) << name;
      }
      if (row.free_completed != k_never) {
        ASSERT_TRUE(is_of(row.free_completed, memory::Action::free_completed)) << name;
      }
    }
  }
}

}  // namespace lifetimes_test
}  // namespace cufit::analysis
