// SPDX-License-Identifier: Apache-2.0
// Laws of the levels of detail, on made-up and on real runs: what a level says equals what the
// level below says, and the finest equals a direct sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "memory/analysis/timeline.h"
#include "unit/memory/analysis/traces.h"

namespace cufit::analysis {
namespace timeline_test {

struct Grouped {
  Lifetimes lifetimes;
  std::vector<uint8_t> group_of;
  uint32_t groups = 0;
};

Grouped made_up(uint32_t events, uint32_t seed) {
  std::mt19937 random(seed);
  Grouped out;
  out.groups = 5;
  out.lifetimes.events = events;
  std::vector<uint32_t> live;
  for (int i = 0; i < 20; ++i) {
    Lifetime row;
    row.block_bytes = 512 * (1 + random() % 1000);
    if (i % 5 == 0) row.free_requested = 0;  // waited for its completion already
    if (i % 5 != 0) live.push_back(static_cast<uint32_t>(out.lifetimes.rows.size()));
    out.lifetimes.rows.push_back(row);
  }
  out.lifetimes.initial = 20;
  for (uint32_t e = 0; e < events; ++e) {
    const uint32_t dice = random() % 10;
    if (dice < 5) {
      Lifetime row;
      row.alloc_event = e;
      row.block_bytes = 512 * (1 + random() % 100000);
      live.push_back(static_cast<uint32_t>(out.lifetimes.rows.size()));
      out.lifetimes.rows.push_back(row);
    } else if (dice < 9 && !live.empty()) {
      const size_t pick = random() % live.size();
      out.lifetimes.rows[live[pick]].free_requested = e;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
    }
  }
  for (size_t i = 0; i < out.lifetimes.rows.size(); ++i)
    out.group_of.push_back(static_cast<uint8_t>(random() % out.groups));
  return out;
}

// As the header of Lifetimes defines it, without any sum that is carried on.
std::vector<uint64_t> parts_at(const Grouped& run, uint32_t event) {
  std::vector<uint64_t> parts(run.groups);
  for (size_t i = 0; i < run.lifetimes.rows.size(); ++i)
    if (is_allocated(run.lifetimes.rows[i], event))
      parts[run.group_of[i]] += run.lifetimes.rows[i].block_bytes;
  return parts;
}

uint64_t sum(const std::vector<uint64_t>& parts) {
  uint64_t total = 0;
  for (const uint64_t part : parts) total += part;
  return total;
}

void expect_levels_agree(const Timeline& timeline) {
  for (size_t l = 1; l < timeline.levels.size(); ++l) {
    const Level& fine = timeline.levels[l - 1];
    const Level& level = timeline.levels[l];
    EXPECT_EQ(level.bucket_events, fine.bucket_events * k_fan_out);
    ASSERT_EQ(level.max.size(), (fine.max.size() + k_fan_out - 1) / k_fan_out);
    for (size_t i = 0; i < level.max.size(); ++i) {
      const size_t first = i * k_fan_out;
      const size_t end = std::min(first + k_fan_out, fine.max.size());
      const auto best = std::max_element(fine.max.begin() + static_cast<std::ptrdiff_t>(first),
                                         fine.max.begin() + static_cast<std::ptrdiff_t>(end));
      EXPECT_EQ(level.max[i], *best);
      EXPECT_EQ(level.at[i], fine.at[static_cast<size_t>(best - fine.max.begin())]);
      EXPECT_EQ(level.min[i],
                *std::min_element(fine.min.begin() + static_cast<std::ptrdiff_t>(first),
                                  fine.min.begin() + static_cast<std::ptrdiff_t>(end)));
    }
  }
  EXPECT_LE(timeline.levels.back().max.size(), k_fan_out);
  EXPECT_LE(timeline.levels.front().max.size(), k_max_buckets);
}

void expect_parts_are_the_sum(const Timeline& timeline) {
  const Level& finest = timeline.levels.front();
  ASSERT_EQ(timeline.parts.size(), finest.max.size() * timeline.groups);
  for (size_t i = 0; i < finest.max.size(); ++i) {
    uint64_t total = 0;
    for (uint32_t g = 0; g < timeline.groups; ++g) total += timeline.parts[i * timeline.groups + g];
    EXPECT_EQ(total, finest.max[i]);
    EXPECT_GE(finest.at[i], i * finest.bucket_events);
    EXPECT_LT(finest.at[i], (i + 1) * finest.bucket_events);
  }
}

TEST(Timeline, EqualsADirectSumOfMadeUpRuns) {
  for (const uint32_t events : {1u, 63u, 64u, 65u, 257u, 3000u}) {
    SCOPED_TRACE(events);
    const Grouped run = made_up(events, events);
    const Timeline timeline = timeline_of(run.lifetimes, run.group_of, run.groups);
    const Level& finest = timeline.levels.front();
    ASSERT_EQ(finest.max.size(), (events + finest.bucket_events - 1) / finest.bucket_events);
    for (size_t i = 0; i < finest.max.size(); ++i) {
      uint64_t max = 0, min = UINT64_MAX;
      const auto end =
          static_cast<uint32_t>(std::min<uint64_t>(events, (i + 1) * finest.bucket_events));
      for (auto e = static_cast<uint32_t>(i * finest.bucket_events); e < end; ++e) {
        const uint64_t total = sum(parts_at(run, e));
        max = std::max(max, total);
        min = std::min(min, total);
      }
      EXPECT_EQ(finest.max[i], max);
      EXPECT_EQ(finest.min[i], min);
      const std::vector<uint64_t> wanted = parts_at(run, finest.at[i]);
      EXPECT_EQ(sum(wanted), max);
      for (uint32_t g = 0; g < run.groups; ++g)
        EXPECT_EQ(timeline.parts[i * run.groups + g], wanted[g]);
    }
    expect_levels_agree(timeline);
    expect_parts_are_the_sum(timeline);
  }
}

TEST(Timeline, KeepsItsLevelsFewForLongRuns) {
  const Grouped run = made_up(600'000, 1);
  const Timeline timeline = timeline_of(run.lifetimes, run.group_of, run.groups);
  EXPECT_EQ(timeline.levels.front().bucket_events, k_min_bucket * k_fan_out);
  expect_levels_agree(timeline);
  expect_parts_are_the_sum(timeline);
}

TEST(Timeline, ReachesTheReplaysPeakOnRealTraces) {
  for (const char* name : {"trace-gpt2-stacks", "trace-varlen", "streams", "graphs", "cnn"}) {
    SCOPED_TRACE(name);
    const TestTrace& trace = real_trace(name);
    const std::vector<uint8_t> one(trace.lifetimes.rows.size());
    const Timeline timeline = timeline_of(trace.lifetimes, one, 1);
    expect_levels_agree(timeline);
    expect_parts_are_the_sum(timeline);
    memory::ReplayOptions options;
    options.allocator.settings = trace.verified.recording.settings;
    options.allocator.version = trace.verified.recording.version;
    const std::vector<uint64_t>& top = timeline.levels.back().max;
    EXPECT_EQ(*std::max_element(top.begin(), top.end()),
              memory::verify(*trace.verified.program, options).result.stats.allocated_bytes.peak);
  }
}

TEST(Timeline, IsOneEmptyLevelWithoutEvents) {
  const Timeline timeline = timeline_of({}, {}, 3);
  ASSERT_EQ(timeline.levels.size(), 1u);
  EXPECT_TRUE(timeline.levels.front().max.empty());
}

}  // namespace timeline_test
}  // namespace cufit::analysis
